from gramian.core import host_memory


def test_the_container_s_limit_counts_less_what_is_used_but_not_its_file_cache(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 150\n")
    assert host_memory._container_available(tmp_path) == 450


def test_a_container_without_a_limit_has_none(tmp_path):
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("700\n")
    assert host_memory._container_available(tmp_path) == 2**62
    assert host_memory._container_available(tmp_path / "nothing") == 2**62


def test_the_host_s_memory_is_what_the_kernel_says_or_all_there_is(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 20 kB\nMemAvailable:  10 kB\n")
    assert host_memory._host_available(tmp_path / "meminfo") == 10240
    assert host_memory._host_available(tmp_path / "nothing") > 0
