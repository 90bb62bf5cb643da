// Scrolls the element to the middle of the view, for a person who wants to see it.
function () {
  this.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  return {};
}
