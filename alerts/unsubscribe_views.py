"""The pages behind the links in the mails: GET shows and changes nothing, POST acts, and again undoes. No cookie needed.

Whoever has the link may use it, signed in or not; so it is the link that is checked, and CSRF tokens would add nothing
but the cookie that a mailbox's one-click request cannot have (RFC 8058).
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from alerts import wishes
from alerts.unsubscribe import Scope, Wish, read, token


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, key: str) -> HttpResponse:
    wish = read(key)
    if wish is None:
        return render(request, "alerts/unsubscribe/unknown.html", status=404)
    acted = ""
    if request.method == "POST":
        if "undo" in request.POST:
            wishes.undo(wish)
            acted = "undone"
        else:
            # Whatever else the body says: a mailbox's one click, or our own button.
            wishes.stop(wish, now=timezone.now())
            acted = "stopped"
    standing = wishes.standing(wish)
    if standing is None:
        return render(request, "alerts/unsubscribe/gone.html", {"wish": wish})
    everything = token(Wish(Scope.ALERTS, wish.user_id)) if wish.scope is Scope.ALERT else None
    context = {"wish": wish, "standing": standing, "acted": acted, "key": key, "everything": everything}
    return render(request, "alerts/unsubscribe/page.html", context)
