// Takes the focus from the field, as going on to the next one does.
function () {
  kit.fieldOf(this).blur();
}
