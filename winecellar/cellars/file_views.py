"""Files of bottles: out as our CSV, in with a look at the totals first, and undone."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from winecellar.cellars import imports, selectors, words
from winecellar.cellars.files import ours
from winecellar.cellars.forms import FileForm
from winecellar.cellars.mine import own_cellar
from winecellar.cellars.models import Cellar, Import

SHOWN_IMPORTS = 20


@own_cellar
@require_safe
def export(request: HttpRequest, cellar: Cellar) -> StreamingHttpResponse:
    name = f"cellar-{timezone.now():%Y-%m-%d}.csv"
    return StreamingHttpResponse(
        ours.write(selectors.lots(cellar)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@own_cellar
@require_http_methods(["GET", "HEAD", "POST"])
def upload(request: HttpRequest, cellar: Cellar) -> HttpResponse:
    form = FileForm(request.POST, request.FILES) if request.method == "POST" else FileForm()
    if form.is_bound and form.is_valid():
        file = form.cleaned_data["file"]
        try:
            one = imports.preview(
                cellar=cellar,
                file_name=file.name,
                content=file.read(),
                decimal_sign=form.cleaned_data["decimal_sign"],
                now=timezone.now(),
            )
        except imports.ImportRefusedError as error:
            form.add_error("file", str(error))
        else:
            return redirect("import", pk=one.pk)
    latest = cellar.imports.defer("content")[:SHOWN_IMPORTS]
    return render(request, "cellar/import.html", {"form": form, "imports": latest})


@own_cellar
@require_safe
def import_page(request: HttpRequest, cellar: Cellar, pk: int) -> HttpResponse:
    one = Import.objects.defer("content").get(pk=pk, cellar=cellar)
    return render(request, "cellar/preview.html", {"one": one, "report": one.report, "cellar": cellar})


@own_cellar
@require_POST
def import_apply(request: HttpRequest, cellar: Cellar, pk: int) -> HttpResponse:
    try:
        one = imports.apply(cellar=cellar, import_id=pk, now=timezone.now())
    except imports.ImportRefusedError as error:
        messages.info(request, str(error))
    else:
        messages.success(request, f"Imported {words.bottles(one.report['new'])}. They are valued in the coming night.")
    return redirect("import", pk=pk)


@own_cellar
@require_POST
def import_undo(request: HttpRequest, cellar: Cellar, pk: int) -> HttpResponse:
    stay = imports.undo(cellar=cellar, import_id=pk, now=timezone.now())
    if stay:
        messages.info(request, f"Undone, but for {stay} rows that you have changed since: they stay.")
    elif stay == 0:
        messages.success(request, "Undone: what this import brought is out of the cellar.")
    return redirect("import", pk=pk)


@own_cellar
@require_POST
def import_discard(request: HttpRequest, cellar: Cellar, pk: int) -> HttpResponse:
    imports.discard(cellar=cellar, import_id=pk)
    messages.success(request, "Given up: nothing was imported.")
    return redirect("cellar-import")
