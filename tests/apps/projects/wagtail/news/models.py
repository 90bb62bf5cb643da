"""One type of page, with rich text and a picture."""

from django.db import models
from wagtail.admin.panels import FieldPanel
from wagtail.fields import RichTextField
from wagtail.models import Page


class Article(Page):
    """A page with all kinds of fields that an editor fills in."""

    date = models.DateField()
    body = RichTextField()
    picture = models.ForeignKey("wagtailimages.Image", null=True, on_delete=models.SET_NULL, related_name="+")
    content_panels = (*Page.content_panels, FieldPanel("date"), FieldPanel("body"), FieldPanel("picture"))
