# SPDX-License-Identifier: Apache-2.0
"""A site of Django for gunicorn (shop:application): SQLite, a template, JSON, regular expressions."""
import hashlib
import json
import os
import re

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection, models
from django.http import HttpResponse
from django.template import Context, Template
from django.urls import path

settings.configure(
    ALLOWED_HOSTS=["*"], SECRET_KEY="bench", ROOT_URLCONF=__name__, USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3",
                           "NAME": os.environ["SHOP_DIR"] + f"/{os.getpid()}.sqlite"}},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
django.setup()


class Article(models.Model):
    name = models.CharField(max_length=100)
    price = models.IntegerField()

    class Meta:
        app_label = "shop"


PAGE = Template("<ul>{% for a in articles %}<li>{{ a.name|upper }}: {{ a.price|add:3 }}"
                "{% if a.price > 50 %} (dear){% endif %}</li>{% endfor %}</ul>")
WORD = re.compile(r"(\w+)-(\d+)")


def make_table():
    with connection.schema_editor() as editor:
        editor.create_model(Article)
    Article.objects.bulk_create(Article(name=f"thing-{i}", price=i * 37 % 101) for i in range(200))


def show(_request):
    articles = list(Article.objects.filter(price__gt=20).order_by("-price")[:40])
    page = PAGE.render(Context({"articles": articles}))
    words = sorted(WORD.findall(page.lower()), key=lambda w: (int(w[1]), w[0]))
    body = json.dumps({"page": page, "words": words, "sum": hashlib.sha256(page.encode()).hexdigest()})
    return HttpResponse(body, content_type="application/json")


urlpatterns = [path("", show)]
application = get_wsgi_application()
make_table()
