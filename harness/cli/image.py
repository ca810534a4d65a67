"""`harness image`: build, list and verify worker images."""

from __future__ import annotations

import click

from harness.cli.amounts import show_size
from harness.cli.command import Group
from harness.cli.offer import offer
from harness.cli.options import json_option, print_json
from harness.cli.progress import narrating, working
from harness.flows.images import build_named_image, list_host_images, verify_image
from harness.flows.session import open_host
from harness.model.digest import short


@click.group(cls=Group)
def image() -> None:
    """Build, list and verify worker images."""


@image.command("build")
@click.argument("name", shell_complete=offer("images"))
@json_option
def image_build(name: str, *, as_json: bool) -> None:
    """Build the image NAME from its definition and lock its content id.

    Everything from outside is acquired first, by hash; the rest happens with the network off. An
    image that is built already from the same definition is left as it is.
    """
    host = open_host()
    with narrating(quiet=as_json) as report:
        built = build_named_image(host, name, report)
    if as_json:
        print_json({**built.image.to_json(), "builtOn": built.built_on})
    else:
        click.echo(f"image {built.image.name}: {built.image.image_id} ({built.image.platform})")


@image.command("list")
@json_option
def image_list(*, as_json: bool) -> None:
    """List the locked images of this host."""
    found = list_host_images(open_host())
    if as_json:
        print_json(
            [
                {
                    **status.locked.image.to_json(),
                    "builtOn": status.locked.built_on,
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
        click.echo(
            f"{locked.image.name:<16}  {short(locked.image.image_id)}  {locked.image.platform}  "
            f"{locked.built_on}  {state}"
        )
    if not found:
        click.echo("no images yet; `harness image build python` makes one", err=True)


@image.command("verify")
@click.argument("name", shell_complete=offer("images"))
@json_option
def image_verify(name: str, *, as_json: bool) -> None:
    """Hash all that the engine holds of the image NAME against its locked id."""
    host = open_host()
    with working(f"hashing image {name}", quiet=as_json):
        verified, size = verify_image(host, name)
    if as_json:
        print_json({**verified.to_json(), "bytes": size, "ok": True})
    else:
        click.secho(f"image {name} ok: {verified.image_id}, {show_size(size)} hashed", fg="green")
