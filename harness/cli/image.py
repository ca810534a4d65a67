"""`harness image`: build, add, list and verify worker images."""

from __future__ import annotations

from typing import Any

import click

from harness.cli.amounts import show_size
from harness.cli.command import Group
from harness.cli.offer import offer
from harness.cli.options import json_option, print_json
from harness.cli.plain import plain
from harness.cli.progress import narrating, working
from harness.execution.image.compare import Difference
from harness.execution.image.lock import LockedImage
from harness.flows.images import (
    add_named_image,
    build_named_image,
    list_host_images,
    verify_image,
)
from harness.flows.session import open_host
from harness.model.digest import short

SHOWN_FILES = 20


@click.group(cls=Group)
def image() -> None:
    """Build, add, list and verify worker images."""


@image.command("build")
@click.argument("name", shell_complete=offer("images"))
@click.option(
    "--fresh",
    is_flag=True,
    help="Take nothing from the cache, and say what differs from the image before.",
)
@json_option
def image_build(name: str, *, fresh: bool, as_json: bool) -> None:
    """Build the image NAME from its definition.

    Its content id is locked when it is done. Everything from outside is acquired first, by hash;
    the rest happens with the network off. An image that is built already from the same definition
    is left as it is; with --fresh it is built from the packages that the Debian archive has now.
    """
    host = open_host()
    with narrating(quiet=as_json) as report:
        built = build_named_image(host, name, report, fresh=fresh)
    if as_json:
        difference = built.difference.to_json() if built.difference else None
        print_json({**_locked_json(built.locked), "difference": difference})
        return
    _say_locked(built.locked)
    if built.difference:
        _say_difference(built.difference)


@image.command("add")
@click.argument("name")
@click.argument("source")
@click.option("--image", "chosen", default="", help="Which image of an archive with several.")
@click.option("--replace", is_flag=True, help="Let NAME mean another image from now on.")
@json_option
def image_add(name: str, source: str, *, chosen: str, replace: bool, as_json: bool) -> None:
    """Add an image that exists as NAME.

    Our init is put on top as one layer, and the content id of the result is locked.

    SOURCE is an archive of `docker save` or an OCI layout (./image.tar), an image of the engine
    (name:tag, sha256:ID), or one of a registry (host:port/name:tag, host/name@sha256:DIGEST). A
    registry's tag is resolved to a digest, fetched by it, and both are locked.

    Of the image's config only platform and layers are kept: no entrypoint, environment, user,
    volume or health check comes along. It has to be for the engine's platform.
    """
    host = open_host()
    with narrating(quiet=as_json) as report:
        added = add_named_image(host, name, source, report, chosen=chosen, replace=replace)
    if as_json:
        print_json(_locked_json(added))
    else:
        _say_locked(added)


@image.command("list")
@json_option
def image_list(*, as_json: bool) -> None:
    """List the locked images of this host.

    Each with its id, platform, time, size at the engine, and where it came from.
    """
    found = list_host_images(open_host())
    if as_json:
        print_json(
            [
                {
                    **_locked_json(status.locked),
                    "present": status.info is not None,
                    "size": status.info.size if status.info else 0,
                }
                for status in found
            ]
        )
        return
    for status in found:
        locked = status.locked
        state = show_size(status.info.size) if status.info else "gone from the engine"
        origin = f"{locked.origin.kind} {locked.origin.reference}" if locked.origin else "built"
        click.echo(
            plain(
                f"{locked.image.name:<16}  {short(locked.image.image_id)}  "
                f"{locked.image.platform}  {locked.built_on}  {state}  {origin}"
            )
        )
    if not found:
        click.echo("no images yet; `harness image build python` makes one", err=True)


@image.command("verify")
@click.argument("name", shell_complete=offer("images"))
@click.option(
    "--source",
    is_flag=True,
    help="Also ask the registry or engine it came from whether its name was moved.",
)
@json_option
def image_verify(name: str, *, source: bool, as_json: bool) -> None:
    """Hash the image NAME against what is locked.

    Everything that the engine holds of it is read back: config, layers, and the init that a worker
    of it would start.
    """
    host = open_host()
    with working(f"hashing image {name}", quiet=as_json):
        verified = verify_image(host, name, source=source)
    locked = verified.locked
    if as_json:
        members = {**_locked_json(locked), "init": verified.init}
        print_json({**members, "bytes": verified.size, "ok": True})
        return
    click.secho(
        f"image {name} ok: {locked.image.image_id}, {show_size(verified.size)} hashed, "
        f"init {short(verified.init)}",
        fg="green",
    )


def _locked_json(locked: LockedImage) -> dict[str, Any]:
    return {
        **locked.image.to_json(),
        "builtOn": locked.built_on,
        "init": locked.init or "",
        "source": locked.origin.to_json() if locked.origin else None,
    }


def _say_locked(locked: LockedImage) -> None:
    image = locked.image
    click.echo(f"image {image.name}: {image.image_id} ({image.platform})")
    if locked.origin:
        click.echo(plain(f"from {locked.origin}"))


def _say_difference(difference: Difference) -> None:
    """Say what differs from the image that had the name before."""
    click.echo("it differs from the image before; what was sealed with that one is sealed anew")
    for change in difference.packages:
        click.echo(plain(f"  package {change}"))
    shown = difference.files[:SHOWN_FILES]
    for path in shown:
        click.echo(plain(f"  file {path}"))
    if len(difference.files) > len(shown):
        click.echo(f"  and {len(difference.files) - len(shown)} files more; --json lists all")
    if not difference.packages and not difference.files:
        click.echo("  only its definition")
