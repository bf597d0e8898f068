"""Dead letters in the admin: what waits by kind, the letters, one case file, deciding about many, a redrive on its way.

Edges only: each page parses, makes one call, renders. The acts, their permissions and what they ask for are in
dead_letters/acts.py. No page counts rows or reads more of them than it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.http import urlencode

from jobs.dead_letters import preflight, selectors, services, store
from jobs.dead_letters.acts import ACTS, Act
from jobs.dead_letters.case_files import load_case_files
from jobs.dead_letters.cli import counted
from jobs.dead_letters.forms import DecisionForm, FilterForm
from jobs.dead_letters.models import AuditEntry, DeadLetter, Outcome, Redrive
from jobs.dead_letters.selection import Selection
from jobs.dead_letters.services import NeedsTellingError, RefusedError
from jobs.dead_letters.sparkline import sparkline
from jobs.read_only import ReadOnlyAdmin

AGAIN = "dead letters, typed"  # in the session: what was given for the portion before


def allowed(request: HttpRequest, act: Act) -> bool:
    return bool(request.user.has_perm(f"jobs.{act.permission}_deadletter"))


def offered(request: HttpRequest) -> list[Act]:
    """What this person may do; nothing at all for who may only look."""
    return [act for act in ACTS.values() if allowed(request, act)]


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyAdmin):
    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("letters/", wrap(self.letters_view), name="jobs_deadletter_letters"),
            path("decide/<slug:name>/", wrap(self.decide_view), name="jobs_deadletter_decide"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """What needs a person now: letters by kind."""
        self._may_look(request)
        everything = "all" in request.GET
        now = store.now()
        found = selectors.groups(open_only=not everything, now=now)
        return self._page(
            request,
            "groups",
            "Dead letters",
            groups=[(group, sparkline(group.spark)) for group in found],
            everything=everything,
            more=len(found) == selectors.MOST_GROUPS,
            now=now,
            redrives=Redrive.objects.filter(ended_at=None)[:20],
        )

    def letters_view(self, request: HttpRequest) -> HttpResponse:
        self._may_look(request)
        now = store.now()
        form = FilterForm(request.GET)
        selection, page = Selection(), None
        if form.is_valid():
            try:
                selection = form.selection(now)
                page = selectors.page(selection, before=request.GET.get("before", ""))
            except ValueError as error:
                form.add_error(None, str(error))
        older = urlencode({**request.GET.dict(), "before": page.older}) if page and page.older else ""
        return self._page(
            request, "letters", "Letters", form=form, page=page, older=older, selection=selection, now=now,
            query=urlencode(selection.as_query()), whole=not selection.is_everything,
        )  # fmt: skip

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One letter's case file."""
        self._may_look(request)
        letter = DeadLetter.objects.filter(pk=int(object_id)).first() if object_id.isdecimal() else None
        if letter is None or len(object_id) > 18:
            raise Http404
        now = store.now()
        case = selectors.case_file(letter, now=now)
        names = selectors.names([letter.decided_by, letter.assigned_to, *(entry.by for entry in case.audit)])
        return self._page(
            request, "case", f"Dead letter {letter.pk}", case=case, letter=letter, now=now,
            acts=[act for act in offered(request) if act.fits(letter.decision)],
            decided_by=names[letter.decided_by], assigned_to=names[letter.assigned_to],
            audit=[(entry, names[entry.by]) for entry in case.audit],
            traceback=load_case_files().mask(letter.traceback),
            may_see_raw=case.raw is not None and request.user.has_perm(case.raw.permission),
            like_this=urlencode({"fingerprint": letter.fingerprint}),
            near=urlencode(case.siblings.as_query()),
        )  # fmt: skip

    def decide_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """The confirmation page of an act, with the true count; and the act."""
        act = ACTS.get(name)
        if act is None:
            raise Http404
        self._may_look(request)
        if not allowed(request, act):
            raise PermissionDenied
        try:
            selection = _selection(request)
        except ValueError as error:
            messages.error(request, str(error))
            return redirect("admin:jobs_deadletter_changelist")
        now = store.now()
        again = request.session.get(AGAIN) if selection.after else None
        form = DecisionForm(act, request.POST if "confirm" in request.POST else None, usual=again)
        if form.is_bound and form.is_valid():
            try:
                done = act.do(selection=selection, by=str(request.user.pk), now=now, **form.given)
            except NeedsTellingError as error:
                form.add_error("told", str(error).removeprefix("told: "))
            except RefusedError as error:
                form.refuse(error)
            else:
                return self._done(request, act, done, form.typed)
        found = preflight.look(selection, kind=act.redrives, now=now) if act.redrives else None
        if found is not None:
            form.needs_telling(found.old)
        count, most = _count(act, selection), settings.DECISION_MOST
        return self._page(
            request, "decide", act.label, act=act, form=form, selection=selection, found=found, how_many=count,
            count=f"{count:,}", portion=f"{most:,}" if count > most else "", hidden=selection.as_query().items(),
        )  # fmt: skip

    def _done(self, request: HttpRequest, act: Act, done: services.Done, typed: dict[str, str]) -> HttpResponse:
        left = f" {done.left_out:,} were left out." if done.left_out else ""
        if not done.ids:
            text = f"{act.label}: nothing was done; none of them waits for it any more.{left}"
            messages.warning(request, text)
        else:
            letters = "letter" if len(done.ids) == 1 else "letters"
            messages.success(request, f"{act.label}: {len(done.ids):,} {letters}.{left}")
        if done.rest:
            # The next portion, with what was typed for this one; its address can be opened again at any time.
            request.session[AGAIN] = typed
            following = reverse("admin:jobs_deadletter_decide", args=[act.name])
            messages.info(request, _what_is_left(act, done))
            return redirect(f"{following}?{urlencode(done.rest.as_query())}")
        if done.redrive:
            return redirect("admin:jobs_redrive_change", done.redrive.pk)
        if len(done.ids) == 1:
            return redirect("admin:jobs_deadletter_change", done.ids[0])
        return redirect("admin:jobs_deadletter_changelist")

    def _may_look(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _page(self, request: HttpRequest, name: str, title: str, **context: Any) -> HttpResponse:
        return TemplateResponse(
            request,
            f"admin/jobs/deadletter/{name}.html",
            {
                **self.admin_site.each_context(request),
                "title": title,
                "opts": self.opts,
                "acts": offered(request),
                "origin_word": load_case_files().origin_word,
                **context,
            },
        )


def _count(act: Act, selection: Selection) -> int:
    count = store.count_open if act.open_only else store.count_any
    return count(selection, most=10**9)


def _what_is_left(act: Act, done: services.Done) -> str:
    assert done.rest is not None
    text = f"{_count(act, done.rest):,} are left. Press the button for the next ones, now or later."
    if done.redrive:
        text += f" Redrive {done.redrive.pk} is under way; another one beside it doubles the pace."
    return text


def _selection(request: HttpRequest) -> Selection:
    """Ticked letters, or filters; with the last letter there is, so that what is counted is what is done."""
    given: Mapping[str, Any] = request.POST if request.method == "POST" else request.GET
    ticked = request.POST.getlist("letter") if request.method == "POST" else []
    query = {"ids": ",".join(ticked)} if ticked else dict(given.items())
    query.setdefault("up_to", str(store.last_id() or 1))
    selection = Selection.from_query(query)
    if selection.is_everything:
        raise ValueError("Choose letters, or narrow them by a filter.")
    return selection


@admin.register(Redrive)
class RedriveAdmin(ReadOnlyAdmin):
    list_display = ("id", "kind", "state", "selection", "progress", "by_name", "created_at")
    ordering = ("-id",)

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [path("<int:pk>/stop/", wrap(self.stop_view), name="jobs_redrive_stop"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        fits = object_id.isdecimal() and len(object_id) < 19
        run = Redrive.objects.filter(pk=int(object_id)).first() if fits else None
        if run is None:
            raise Http404
        settled = sum(count for name, count in run.counts.items() if name not in ("queued", "sent"))
        context = {
            **self.admin_site.each_context(request),
            "title": f"Redrive {run.pk}",
            "opts": self.opts,
            "run": run,
            "settled": settled,
            "counted": counted(run),
            "by": selectors.names([run.by])[run.by],
            "outcomes": [(Outcome(name).label, count) for name, count in run.counts.items()],
            "may_stop": run.state == Redrive.State.RUNNING and not run.stop_asked_by and self._may_stop(request, run),
        }
        return TemplateResponse(request, "admin/jobs/redrive/progress.html", context)

    def stop_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        run = Redrive.objects.filter(pk=pk).first()
        if run is None:
            raise Http404
        if request.method != "POST" or not self._may_stop(request, run):
            raise PermissionDenied
        note = request.POST.get("note", "").strip() or "stopped on its page"
        if services.stop(redrive_id=pk, by=str(request.user.pk), note=note, now=store.now()):
            messages.success(request, "It stops: no more letters are sent.")
        else:
            messages.warning(request, "It is not running any more.")
        return redirect(reverse("admin:jobs_redrive_change", args=[pk]))

    def _may_stop(self, request: HttpRequest, run: Redrive) -> bool:
        return bool(request.user.has_perm(f"jobs.{run.kind}_deadletter"))

    @admin.display(description="progress")
    def progress(self, run: Redrive) -> str:
        return counted(run)

    @admin.display(description="by")
    def by_name(self, run: Redrive) -> str:
        return selectors.names([run.by])[run.by]


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "action", "by_name", "letters", "selection", "note")
    list_filter = ("action",)
    ordering = ("-id",)
    fields = ("at", "action", "by_name", "selection", "letter_ids", "note", "details")

    @admin.display(description="by")
    def by_name(self, entry: AuditEntry) -> str:
        return selectors.names([entry.by])[entry.by]

    @admin.display(description="letters")
    def letters(self, entry: AuditEntry) -> int:
        return len(entry.letter_ids)
