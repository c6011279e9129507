"""Checkpoint storage: a checkpoint on disk is complete or absent; shared files exist as long as they are needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sink_job import KEYS, SCHEMA, NoOutput, rows

from workbench.api.beginning.opening import open_storage
from workbench.connectors.tables import part_log
from workbench.connectors.tables.table_sink import TableSink
from workbench.connectors.tables.tables import Tables
from workbench.durable.checksum import RunningChecksum, checksum, matches
from workbench.durable.delayed_encoding import FILES
from workbench.durable.disk import Disk
from workbench.errors import CheckpointError, CorruptCheckpointError, SinkError
from workbench.operators.contract.base import OperatorContext
from workbench.runtime.storage import DirectoryStorage, Manifest, MemoryStorage, folder_of
from workbench.runtime.storage.encoding import decode, encode
from workbench.runtime.storage.files import LocalFiles

# --- bytes


def test_any_arrow_library_reads_a_state_file_stream_by_stream() -> None:
    table = pa.table({"k": ["a", None], "n": [1, 2]})
    states: dict[str, Any] = {"agg": {"groups": table.slice(1), "step": 7, "later": lambda: [1]}, "stateless": {}}
    source = pa.BufferReader(encode(states).join())
    index = pa.ipc.open_stream(source).read_all()
    assert index.to_pylist() == [
        {"operator": "agg", "name": "groups", "json": None, "parts": None},
        {"operator": "agg", "name": "step", "json": "7", "parts": None},
        {"operator": "agg", "name": "later", "json": "[1]", "parts": None},
        {"operator": "stateless", "name": "", "json": "null", "parts": None},
    ]
    assert pa.ipc.open_stream(source).read_all().to_pylist() == [{"k": None, "n": 2}]
    assert source.tell() == source.size()


@pytest.mark.parametrize("letters", [3, 100_000])
def test_the_index_of_a_state_file_is_what_a_writer_of_arrow_makes(letters: int) -> None:
    table = pa.table({"k": ["a"]})
    data = encode({"agg": {"groups": table, "text": "x" * letters, "none": {}, "all": []}, "stateless": {}}).join()
    columns = {
        "operator": pa.array(["agg", "agg", "agg", "agg", "stateless"]),
        "name": pa.array(["groups", "text", "none", "all", ""]),
        "json": pa.array([None, f'"{"x" * letters}"', "{}", "[]", "null"], pa.large_string()),
        "parts": pa.nulls(5, pa.list_(pa.string())),
    }
    sink = pa.BufferOutputStream()
    for written in (pa.table(columns), table):
        with pa.ipc.new_stream(sink, written.schema) as writer:
            writer.write_table(written)
    assert data == sink.getvalue().to_pybytes()


def test_large_columns_are_written_as_they_are() -> None:
    table = pa.table({"n": np.arange(100_000), "small": pa.array([1] * 100_000, pa.int8())})
    encoded = encode({"agg": {"groups": table, "again": table}})
    pieces = tuple(encoded.pieces())
    addresses = {piece.address for piece in pieces if isinstance(piece, pa.Buffer)}
    assert addresses == {column.chunk(0).buffers()[1].address for column in table.columns}
    assert decode(b"".join(pieces), "f")["agg"]["again"] == table


def test_a_column_that_repeats_another_is_written_once() -> None:
    counts, sums = pa.array(np.arange(100_000)), pa.array(np.arange(100_000) * 2)
    table = pa.table({"count()": counts, "sum(v)": sums, "count(v)": counts}, metadata={"a": "b"})
    data = encode({"agg": {"groups": table}}).join()
    assert len(data) < 1.1 * (counts.nbytes + sums.nbytes)
    found = decode(data, "f")["agg"]["groups"]
    assert isinstance(found, pa.Table)
    assert found.equals(table, check_metadata=True)
    sliced = pa.table({"a": counts.slice(0, 50_000), "b": counts.slice(50_000)})
    assert decode(encode({"agg": {"t": sliced}}).join(), "f")["agg"]["t"] == sliced


@pytest.mark.parametrize("extension", [False, True])
def test_columns_that_begin_elsewhere_in_the_same_memory_are_no_repeats(extension: bool) -> None:
    numbers = pa.array(np.arange(100_002))
    if extension:
        tensors = pa.fixed_shape_tensor(pa.int64(), (2,))
        now, then = (
            pa.ExtensionArray.from_storage(tensors, pa.FixedSizeListArray.from_arrays(numbers.slice(at, 100_000), 2))
            for at in (0, 2)
        )
    else:
        now, then = (pa.StructArray.from_arrays([numbers.slice(at, 100_000)], names=["n"]) for at in (0, 1))
    table = pa.table({"now": now, "then": then})
    assert decode(encode({"agg": {"t": table}}).join(), "f")["agg"]["t"] == table


def test_the_files_that_a_state_needs_stand_beside_its_bytes() -> None:
    encoded = encode({"a": {FILES: lambda: ["x", "y"], "n": 1}, "b": {FILES: ["z"]}})
    assert encoded.files == ("x", "y", "z")
    assert decode(encoded.join(), "f") == {"a": {"n": 1}}


@settings(max_examples=60)
@given(data=st.binary(max_size=200))
def test_what_is_no_state_file_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptCheckpointError, match="the checkpoint file broken"):
        decode(data, "broken")


@given(data=st.binary(min_size=1, max_size=300), at=st.integers(0, 10_000), bits=st.integers(1, 2**32 - 1))
def test_every_change_within_four_bytes_is_found(data: bytes, at: int, bits: int) -> None:
    changed = bytearray(data)
    for offset, mask in enumerate(bits.to_bytes(4, "little")):
        changed[(at + offset) % len(data)] ^= mask if at % len(data) + offset < len(data) else 0
    assert matches(data, checksum(data), "f")
    assert matches(changed, checksum(data), "f") == (changed == data)


def test_a_checksum_says_how_it_was_made() -> None:
    assert checksum(b"123456789") == "crc32:cbf43926"  # the check value of CRC-32
    with pytest.raises(CheckpointError, match="part has a checksum of kind 'xxh9'"):
        matches(b"", "xxh9:00", "part")


def test_memory_gives_back_what_it_got_until_it_is_discarded() -> None:
    storage = MemoryStorage()
    for number in (1, 2):
        file = storage.write(folder_of(number, None), "a[0]", encode({"a": {"n": number}}))
        manifest = Manifest(number, "job", "periodic", 1, 2, {}, (file,), place=folder_of(number, None))
        storage.complete(manifest.place, manifest)
    storage.discard(folder_of(1, None))
    (kept,) = storage.manifests()
    assert storage.states(kept, kept.files[0]) == {"a": {"n": 2}}


# --- manifests


def complete(storage: DirectoryStorage, number: int, needs: tuple[str, ...] = (), savepoint: str | None = None) -> None:
    """A checkpoint of one task that needs these files."""
    place = folder_of(number, savepoint)
    file = storage.write(place, "a[0]", encode({"a": {FILES: list(needs), "n": number}}))
    storage.complete(place, Manifest(number, "job", "periodic", 1, 2, {"a": 1}, (file,), place=place))


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        complete(storage, 3, ("tables/t/one", "tables/t/two"))
        (manifest,) = storage.manifests()
    written = (tmp_path / "chk-00000003" / "a-0.arrow").read_bytes()
    assert manifest.files[0].checksum == checksum(written)
    assert (manifest.checkpoint_id, manifest.size_bytes, manifest.place) == (3, len(written), "chk-00000003")
    assert manifest.operators == {"a"}
    assert manifest.needs == {"tables/t/one", "tables/t/two"}


def test_a_checkpoint_of_an_earlier_version_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        complete(storage, 1)
        path = tmp_path / "chk-00000001" / "manifest.json"
        content = json.loads(path.read_bytes())
        content["format"] = 1
        content["files"] = [{"task": "a[0]", "file": "a-0.arrow", "size": 5, "sha256": "0" * 64}]
        path.write_text(json.dumps(content))
        with pytest.raises(
            CheckpointError, match=r"manifest\.json has format 1, and this version reads format 3"
        ) as caught:
            storage.latest()
        assert not isinstance(caught.value, CorruptCheckpointError)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"format": 3}', '{"format": 3, "files": [{}]}'])
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        complete(storage, 1)
        (tmp_path / "chk-00000001" / "manifest.json").write_text(text)
        with pytest.raises(CorruptCheckpointError, match=r"manifest\.json cannot be read"):
            storage.manifests()


def changed(value: object, *path: str | int) -> Callable[[Any], bytes]:
    """A manifest of which one value is another, and whose checksum is right nevertheless."""

    def change(content: Any) -> bytes:
        within = content
        for name in path[:-1]:
            within = within[name]
        within[path[-1]] = value
        return with_checksum(json.dumps(content, sort_keys=True).encode()[1:])

    return change


def with_checksum(body: bytes) -> bytes:
    return f'{{"checksum": "{checksum(body)}", '.encode() + body


NO_ONE_OF_OURS: list[tuple[Callable[[Any], bytes], str]] = [
    (changed("9", "checkpoint_id"), "it.checkpoint_id is '9' instead of an int"),
    (changed(True, "checkpoint_id"), "it.checkpoint_id is True"),
    (changed(0, "checkpoint_id"), "its checkpoint_id is 0"),
    (changed(2**62 + 1, "checkpoint_id"), "its checkpoint_id is 4611686018427387905"),
    (changed(2**70, "completed_us"), "it.completed_us has more than 64 bits"),
    (changed(float("nan"), "completed_us"), "it.completed_us is nan"),
    (changed(0, "max_parallelism"), "its max_parallelism is 0, which is not from 1 to 32768"),
    (changed(32_769, "max_parallelism"), "its max_parallelism is 32769, which is not from 1 to 32768"),
    (changed("128", "max_parallelism"), "it.max_parallelism is '128' instead of an int"),
    (changed(None, "job"), "it.job is None instead of a str"),
    (changed("\ud800", "job"), "surrogates not allowed"),
    (changed({"a": "two"}, "parallelism"), "it.parallelism is 'two'"),
    (changed(["a"], "parallelism"), "it.parallelism is a list instead of a dict"),
    (changed([None], "files", 0, "operators"), r"it.files\[0\].operators\[0\] is None"),
    (changed("../../x", "files", 0, "file"), r"a file '../../x', which is outside of the checkpoint directory"),
    (changed("/etc/passwd", "files", 0, "file"), "a file '/etc/passwd'"),
    (changed(["a\0b"], "files", 0, "needs"), "a file 'a.x00b'"),
    (changed(["x" * 5_000], "files", 0, "needs"), "a file 'xxx"),
    (changed(["a"], "ignored"), "it has 'ignored', which is not a known field"),
    (lambda content: changed([content["files"][0]] * 2, "files")(content), "two files of one task"),
    (lambda content: with_checksum(b'"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nested too deeply"),
]


@pytest.mark.parametrize(("change", "told"), NO_ONE_OF_OURS)
def test_a_manifest_with_a_right_checksum_and_wrong_values_is_refused(
    tmp_path: Path, change: Callable[[Any], bytes], told: str
) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        complete(storage, 1)
        path = tmp_path / "chk-00000001" / "manifest.json"
        content = json.loads(path.read_bytes())
        del content["checksum"]
        path.write_bytes(change(content))
        with pytest.raises(CorruptCheckpointError, match=rf"manifest\.json cannot be read \(.*{told}") as caught:
            storage.manifests()
        assert len(str(caught.value)) < 400 + len(str(tmp_path))


@pytest.mark.parametrize("name", ["manifest.json", "a-0.arrow"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        complete(storage, 1)
        path = tmp_path / "chk-00000001" / name
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(CorruptCheckpointError, match=rf"{name} cannot be read \(it is not a file\)"):
            latest_states(storage)


def latest_states(storage: DirectoryStorage) -> list[Any]:
    (manifest,) = storage.manifests()
    return [storage.states(manifest, file) for file in manifest.files]


def test_checkpoints_with_more_than_eight_digits_are_found_again(tmp_path: Path) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        for number in (99_999_999, 100_000_000):
            complete(storage, number)
    with closing(DirectoryStorage(tmp_path)) as storage:
        latest = storage.latest()
        assert latest is not None
        assert (latest.checkpoint_id, storage.highest_id()) == (100_000_000, 100_000_000)


# --- files that checkpoints share


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / "tables" / "t" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"rows")


def shared(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "tables" / "t").iterdir())


def needs(*names: str) -> tuple[str, ...]:
    return tuple(f"tables/t/{name}" for name in names)


def test_a_shared_file_goes_with_the_last_checkpoint_that_needs_it(tmp_path: Path) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        make(tmp_path, "a", "b", "ab", "c")
        complete(storage, 1, needs("a", "b"))
        complete(storage, 2, needs("a", "b"), savepoint="before")
        complete(storage, 3, needs("ab"))
        complete(storage, 4, needs("ab", "c"))
        storage.discard(folder_of(1, None))
        assert shared(tmp_path) == ["a", "ab", "b", "c"]  # the savepoint needs them
        storage.discard("savepoints/before")
        assert shared(tmp_path) == ["ab", "c"]
        storage.discard(folder_of(3, None))
        assert shared(tmp_path) == ["ab", "c"]


def test_what_no_checkpoint_needs_goes_when_the_directory_is_opened(tmp_path: Path) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        make(tmp_path, "a", "of-a-savepoint", "stray", "half.tmp")
        complete(storage, 1, needs("a"))
        complete(storage, 2, needs("of-a-savepoint"), savepoint="s")
        storage.write(folder_of(3, None), "a[0]", encode({"a": {FILES: ["tables/t/stray"]}}))
        storage.remove_incomplete()
        assert shared(tmp_path) == ["a", "of-a-savepoint"]
        assert [m.checkpoint_id for m in storage.manifests()] == [1]


def test_a_failed_checkpoint_takes_no_shared_file_with_it(tmp_path: Path) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        make(tmp_path, "a")
        storage.write(folder_of(1, None), "a[0]", encode({"a": {FILES: ["tables/t/a"]}}))
        storage.discard(folder_of(1, None))
        assert shared(tmp_path) == ["a"]  # the next checkpoint lists it again


def test_a_directory_is_unused_until_something_is_written_to_it(tmp_path: Path) -> None:
    with closing(DirectoryStorage(tmp_path / "a")) as storage:
        assert storage.unused
        storage.write(folder_of(1, None), "a[0]", encode({}))
        assert not storage.unused  # what never completed has a number, and is to be removed
    with closing(DirectoryStorage(tmp_path / "b")) as storage:
        storage.take_back(Manifest(1, "job", "savepoint", 1, 2, {}, (), place="savepoints/gone"), 2)
        assert not storage.unused
    with pytest.raises(CheckpointError, match="was restored from savepoints/gone, which is missing"):
        open_storage(tmp_path / "b", True, None)


def test_what_a_disk_takes_in_pieces_is_written_whole(tmp_path: Path) -> None:
    class Slow(FileIO):
        def write(self, data: Any) -> int:
            return super().write(memoryview(data)[:3])

    with Slow(str(tmp_path / "a"), "w") as file:
        for piece in (b"ten bytes!", b"", pa.py_buffer(b"more")):
            Disk().write(file, "a", piece)
        Disk().sync(file, "a")
        assert (tmp_path / "a").read_bytes() == b"ten bytes!more"


def test_no_file_outside_of_the_directory_is_deleted(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    with closing(DirectoryStorage(tmp_path / "c")) as storage:
        place = folder_of(1, None)
        file = storage.write(place, "a[0]", encode({"a": {FILES: ["../victim"]}}))
        storage.complete(place, Manifest(1, "job", "periodic", 1, 2, {}, (file,), place=place))
        with pytest.raises(CheckpointError, match="outside of the checkpoint directory"):
            storage.discard(folder_of(1, None))
    assert victim.exists()


FORKING = """
import os, sys, time
from workbench.errors import CheckpointError
from workbench.runtime.storage import DirectoryStorage

def child(read):
    ready, told = os.pipe()
    if os.fork() == 0:
        storage.close()  # as a process does that ends: nothing of it is the child's
        os.close(1)
        os.write(told, b".")
        os.read(read, 1)
        os._exit(0)
    os.read(ready, 1)  # until it has left what the fork gave it

read = int(sys.argv[2])
storage = DirectoryStorage(sys.argv[1])
child(read)
try:
    DirectoryStorage(sys.argv[1])
except CheckpointError as error:
    print(f"in use by process {os.getpid()}" in str(error))
storage.close()
storage.close()
storage = DirectoryStorage(sys.argv[1])
child(read)
print("taken again", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_a_forked_process_has_no_part_in_a_lock(tmp_path: Path) -> None:
    orphans, end = os.pipe()
    command = [sys.executable, "-c", FORKING, str(tmp_path), str(orphans)]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=(orphans,)) as owner:
            assert owner.stdout is not None
            assert [owner.stdout.readline(), owner.stdout.readline()] == ["True\n", "taken again\n"]
            with pytest.raises(CheckpointError, match=f"in use by process {owner.pid}"):
                DirectoryStorage(tmp_path)
            owner.kill()
        DirectoryStorage(tmp_path).close()
    finally:
        os.close(orphans)
        os.close(end)  # those that are still there end


def test_links_that_lead_out_of_the_directory_are_refused_and_others_work(tmp_path: Path) -> None:
    root, outside = tmp_path / "c", tmp_path / "outside"
    for folder in (root / "inner", outside):
        folder.mkdir(parents=True)
    victim = outside / "victim"
    victim.write_bytes(b"mine")
    (root / "file").symlink_to(victim)
    (root / "folder").symlink_to(outside)
    (root / "inner" / "far").symlink_to("../../outside")
    files = LocalFiles(root)
    files.write("own", (b"own",))
    for path in ("file", "folder", "folder/victim", "folder/new", "inner/far/victim", "folder/../../outside/victim"):
        uses: tuple[Callable[[str], object], ...] = (
            *(files.exists, files.folders, files.files, files.delete, files.delete_folder, files.path_of),
            lambda path: files.read(path, RunningChecksum()),
            lambda path: files.write(path, (b"yours",)),
            lambda path: files.take(files, "own", path),
            lambda path: files.take(files, path, "taken"),
        )
        for use in uses:
            with pytest.raises(CheckpointError, match="is outside of the checkpoint directory"):
                use(path)
    files.delete_folder("inner")  # with the link in it, and not what it leads to
    assert not (root / "inner").exists()
    assert [(file, file.read_bytes()) for file in outside.iterdir()] == [(victim, b"mine")]
    assert sorted(file.name for file in root.iterdir()) == ["file", "folder", "own"]

    (root / "kept").mkdir()
    (root / "alias").symlink_to(root / "kept")
    files.write("alias/a", (b"a",))
    assert bytes(memoryview(files.read("kept/a", RunningChecksum()))) == b"a"
    files.delete("alias/a")
    assert not files.exists("kept/a")
    (tmp_path / "way").symlink_to(root)
    assert LocalFiles(tmp_path / "way").exists("own")  # people may keep the directory itself behind a link


def test_nothing_is_written_through_a_link_that_stands_where_a_file_is_to_be_made(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    for name in ("lock", "new.tmp"):
        (tmp_path / name / "c").mkdir(parents=True)
        (tmp_path / name / "c" / name).symlink_to(victim)
    with pytest.raises(CheckpointError, match="cannot be written"):
        DirectoryStorage(tmp_path / "lock" / "c")
    with pytest.raises(SinkError, match="cannot write"):
        LocalFiles(tmp_path / "new.tmp" / "c").write("new", (b"yours",))
    assert victim.read_bytes() == b"mine"


# --- a sink whose files are merged, crashed before and after everything that it does to the disk


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_at(number: int) -> Iterator[Callable[[], int]]:
    """Let the process end at the `number`-th operation on the disk, before it or after it in turn."""
    count = 0

    def dying(operation: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == number:
                raise Killed
            result = operation(*arguments, **options)
            count += 1
            if count == number:
                raise Killed
            return result

        return run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", dying(lambda descriptor: None))
        patch.setattr(Path, "replace", dying(Path.replace))
        patch.setattr(Path, "unlink", dying(Path.unlink))
        patch.setattr(shutil, "rmtree", dying(shutil.rmtree))
        yield lambda: count


class Process:
    """A process that runs a job of two sink subtasks in a checkpoint directory, from the latest checkpoint on."""

    RETAINED = 2

    def __init__(self, folder: Path, upsert: list[str], savepoint: str | None = None) -> None:
        self.storage = DirectoryStorage(folder)
        try:
            self._begin(folder, upsert, savepoint)
        except Killed:
            self.storage.close()
            raise

    def _begin(self, folder: Path, upsert: list[str], savepoint: str | None) -> None:
        self.storage.sync_names()
        self.tables = Tables()
        manifest = self.storage.savepoint(savepoint) if savepoint else self.storage.latest()
        self.next_id = self.storage.highest_id() + 1
        self.storage.remove_incomplete()
        self.places = [m.place for m in self.storage.manifests()]
        self.sinks = [TableSink("t", upsert).create(SCHEMA) for _ in range(2)]
        self.offset = 0
        for subtask, sink in enumerate(self.sinks):
            sink.open(OperatorContext(subtask=subtask, parallelism=2, tables=self.tables, data_dir=folder))
        if manifest is not None:
            files = [self.storage.states(manifest, file) for file in manifest.files]
            for sink in self.sinks:
                sink.restore([state["sink"] for state in files])
            self.offset = int(files[0]["source"]["offset"])  # type: ignore[arg-type]

    def checkpoint(self, savepoint: str | None = None) -> None:
        """Ten more rows and a checkpoint, with all that belongs to it."""
        self.offset += 10
        number, self.next_id = self.next_id, self.next_id + 1
        place = folder_of(number, savepoint)
        files = []
        for subtask, sink in enumerate(self.sinks):
            mine = [value for value in range(self.offset - 10, self.offset) if value % KEYS % 2 == subtask]
            sink.process(rows(mine), 0, NoOutput())
            state = {"sink": sink.snapshot(number), "source": {"offset": self.offset}}
            files.append(self.storage.write(place, f"sink[{subtask}]", encode(state)))
        self.storage.complete(place, Manifest(number, "job", "periodic", 1, 2, {}, tuple(files), place=place))
        for sink in self.sinks:
            sink.notify_complete(number)
        if savepoint is None:
            self.places.append(place)
        while len(self.places) > self.RETAINED:
            self.storage.discard(self.places.pop(0))

    def shown(self) -> list[int]:
        return sorted(self.tables.read("t").column("value").to_pylist())


def expected(offset: int, upsert: list[str]) -> list[int]:
    return sorted({value % KEYS: value for value in range(offset)}.values()) if upsert else list(range(offset))


def run_job(folder: Path, upsert: list[str], until: int) -> None:
    """Checkpoints up to this offset, the fifth of them a savepoint; always closes the directory as a dying process."""
    process = Process(folder, upsert)
    try:
        assert process.shown() == expected(process.offset, upsert)
        while process.offset < until:
            process.checkpoint("fifth" if process.next_id == 5 else None)
            assert process.shown() == expected(process.offset, upsert)
    finally:
        process.storage.close()


@pytest.mark.slow
@pytest.mark.parametrize("upsert", [[], ["key"]])
def test_a_crash_anywhere_while_files_are_merged_and_deleted(
    tmp_path: Path, upsert: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_log, "FAN_IN", 3)
    with killed_at(-1) as count:
        run_job(tmp_path / "whole", upsert, 120)
        operations = count()
    assert any("-to-" in name for name in shared(tmp_path / "whole"))
    rng = np.random.default_rng(5)
    restored = 0
    for number in rng.choice(np.arange(1, operations + 1), size=60, replace=False).tolist():
        folder = tmp_path / str(number)
        with killed_at(number), pytest.raises(Killed):
            run_job(folder, upsert, 120)
        with killed_at(-1):
            run_job(folder, upsert, 130)
            assert len(shared(folder)) <= 26
            back = folder / "savepoints" / "fifth" / "manifest.json"
            if back.exists():  # not when the fifth checkpoint died, and its number with it
                restored += 1
                again = Process(folder, upsert, savepoint="fifth")
                assert again.shown() == expected(again.offset, upsert)
                again.storage.close()
        shutil.rmtree(folder)
    assert restored > 30


def test_files_stay_few_and_a_savepoint_can_be_restored_at_the_end(tmp_path: Path) -> None:
    with killed_at(-1):
        run_job(tmp_path, [], 1_000)
        process = Process(tmp_path, [], savepoint="fifth")
        assert process.shown() == list(range(50))
        process.storage.close()
        assert len(shared(tmp_path)) <= 2 * 5 + 2 * 20  # of the savepoint, and of the latest checkpoints
        latest = Process(tmp_path, [])
        assert latest.shown() == list(range(1_000))
        latest.storage.close()
