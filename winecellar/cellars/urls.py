"""The cellar of whoever is signed in, its bottles, and the files that come and go."""

from django.urls import path

from winecellar.cellars import bottle_views, file_views, views

urlpatterns = [
    path("cellar", views.cellar_page, name="cellar"),
    path("cellar/settings", views.cellar_settings, name="cellar-settings"),
    path("cellar/add", bottle_views.add_search, name="bottle-search"),
    path("cellar/add/other", bottle_views.add_other, name="bottle-add-other"),
    path("cellar/add/<str:wine_id>", bottle_views.add_wine, name="bottle-add"),
    path("cellar/bottles/<int:pk>", bottle_views.bottle_page, name="bottle"),
    path("cellar/bottles/<int:pk>/edit", bottle_views.bottle_edit, name="bottle-edit"),
    path("cellar/bottles/<int:pk>/wine", bottle_views.bottle_wine, name="bottle-wine"),
    path("cellar/bottles/<int:pk>/consume", bottle_views.bottle_consume, name="bottle-consume"),
    path("cellar/bottles/<int:pk>/move", bottle_views.bottle_move, name="bottle-move"),
    path("cellar/bottles/<int:pk>/remove", bottle_views.bottle_remove, name="bottle-remove"),
    path("cellar/consumed/<int:pk>/give-back", bottle_views.give_back, name="bottle-give-back"),
    path("cellar/export", file_views.export, name="cellar-export"),
    path("cellar/import", file_views.upload, name="cellar-import"),
    path("cellar/imports/<int:pk>", file_views.import_page, name="import"),
    path("cellar/imports/<int:pk>/apply", file_views.import_apply, name="import-apply"),
    path("cellar/imports/<int:pk>/undo", file_views.import_undo, name="import-undo"),
    path("cellar/imports/<int:pk>/discard", file_views.import_discard, name="import-discard"),
]
