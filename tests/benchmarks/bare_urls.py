"""Where the bare view is, in the project."""

from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from tests.benchmarks.bare_view import take

urlpatterns = [path("bare", csrf_exempt(take))]
