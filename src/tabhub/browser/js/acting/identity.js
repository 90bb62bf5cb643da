// What a person knows the element by, and whether it is a field for secrets.
function () {
  return { ...kit.identity(this), secret: kit.isSecret(kit.fieldOf(this)) };
}
