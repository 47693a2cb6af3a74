"""The forms of providers and routes. Which fields a provider's form has is said in kinds.py."""

from collections.abc import Mapping
from typing import Any

from wtforms import PasswordField, SelectField, StringField
from wtforms.validators import DataRequired, Length

from console.providers.kinds import Kind, Setting
from console.web.forms import Form, SelectChoice, trimmed

_PREFIX = "set_"


class ProviderForm(Form):
    """What every provider has; `form_of` adds the rest."""

    name = StringField(
        "Name",
        filters=[trimmed],
        validators=[DataRequired("Give it a name."), Length(max=63)],
        description="For routes and records: a-z, 0-9, - and _. It can't be changed later.",
    )

    def given_settings(self) -> dict[str, str]:
        """Gives what was filled in, by the settings' names."""
        return {field.name.removeprefix(_PREFIX): field.data or "" for field in self if field.name.startswith(_PREFIX)}

    def given_secret(self) -> str | None:
        """Gives the secret, None when none was filled in."""
        return self["secret"].data or None if "secret" in self else None


class RouteForm(Form):
    """A route: names in order."""

    name = StringField("Route", filters=[trimmed], default="default", validators=[DataRequired("Name the route.")])
    providers = StringField(
        "Providers, in order",
        filters=[trimmed],
        validators=[DataRequired("Name at least one provider."), Length(max=700)],
        description="Names with commas between. The first takes the messages; the next ones when it surely does not.",
    )


def form_of(kind: Kind, *, is_new: bool, values: Mapping[str, str] | None = None) -> ProviderForm:
    """Gives the form of a kind of provider, filled in with `values`. The secret's field is always empty.

    Errors that the service raises for a setting are shown beside its field: put_error by the setting's name.
    """
    fields: dict[str, Any] = {} if is_new else {"name": None}
    data: dict[str, Any] = {}
    for setting in kind.settings:
        if not setting.is_for_commands:
            fields[_PREFIX + setting.name] = _field(setting)
            data[_PREFIX + setting.name] = (values or {}).get(setting.name, setting.default)
    if kind.secret_label:
        fields["secret"] = PasswordField(
            kind.secret_label,
            description="Kept encrypted and never shown again."
            + ("" if is_new else " Leave it empty to keep the one that is there."),
        )
    return type("KindForm", (ProviderForm,), fields)(data=data)


def field_of(setting_name: str | None) -> str | None:
    """Gives the name of the form's field for a setting; other fields have their own."""
    return setting_name if setting_name in (None, "name", "secret") else _PREFIX + setting_name


def _field(setting: Setting) -> Any:
    if setting.choices:
        return SelectField(
            setting.label, choices=[SelectChoice(choice) for choice in setting.choices], description=setting.hint
        )
    return StringField(setting.label, filters=[trimmed], validators=[Length(max=500)], description=setting.hint)
