import base64

import pytest

from gramian.report import Options, build
from gramian.report.html import Section, picture

pytestmark = pytest.mark.slow


def test_sections_of_others_stand_before_the_studys_and_after_its_results(small_study, tmp_path):
    before, after = Section("mine", "Mine <first>", "<p>one</p>"), Section("later", "Mine later", "<p>two</p>")
    page = build(small_study, tmp_path, Options(replicates=100), before=[before], after=[after]).read_text("utf-8")
    order = [page.index(f'<section id="{name}"') for name in ("mine", "summary", "features", "later", "run")]
    assert order == sorted(order)
    assert "Mine &lt;first&gt;</a>" in page
    assert "<p>one</p></section>" in page


def test_a_picture_lies_in_the_page_with_its_words_escaped(tmp_path):
    (tmp_path / "a.png").write_bytes(b"picture")
    html = picture(tmp_path / "a.png", 'less < "more"')
    assert base64.b64encode(b"picture").decode() in html
    assert 'alt="less &lt; &quot;more&quot;"' in html
