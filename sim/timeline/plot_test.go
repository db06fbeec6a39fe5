package timeline_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/timeline"
)

func TestPlotsAreDrawn(t *testing.T) {
	line := func(values ...int64) (points []timeline.Point) {
		for i, v := range values {
			points = append(points, timeline.Point{At: time.Duration(i) * time.Hour, Value: v})
		}
		return points
	}
	var out bytes.Buffer
	require.NoError(t, timeline.WritePlots(&out, "3 <nodes>", 4*time.Hour, []timeline.Plot{
		{Title: "memory <GiB>", Max: 10, Label: func(v int64) string { return strings.Repeat("I", int(v)) }, Lines: []timeline.Line{
			{Name: "used\x1b", Points: line(1, 5, 20, 3)}, {Name: "requested", Points: line(2, 2, 2, 2)},
		}},
		{Title: "evictions", Lines: []timeline.Line{{Points: line(0, 0, 7, 7)}}},
		{Title: "nothing"},
	}))
	text := out.String()
	for _, want := range []string{"<title>3 &lt;nodes&gt;</title>", ">3 &lt;nodes&gt;</text>", "memory &lt;GiB&gt;", ">IIIIIIIIII<", ">used\ufffd<", "evictions", ">7<", "4h"} {
		assert.Contains(t, text, want)
	}
	assert.Equal(t, 3, strings.Count(text, "<polyline"))
	assert.NotContains(t, text, "NaN")
	// A value above Max is drawn at the top, as is the highest value without Max.
	assert.Equal(t, 2, strings.Count(text, ",56.0")+strings.Count(text, ",200.0 "), text)
	requireXML(t, &out)
}

func TestBarsAreDrawn(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, timeline.WriteBars(&out, "2 <policies>", []timeline.BarGroup{
		{Title: "evictions & kills", Bars: []timeline.Bar{{Name: "first<", Value: 50, Low: 25, High: 100, Label: "50.5"}, {Name: "second", Value: 10, Label: "\x1b"}}},
		{Title: "nothing", Bars: []timeline.Bar{{Name: "first"}, {Name: "second", Value: -5, Low: -9, High: -1}}},
	}))
	text := out.String()
	for _, want := range []string{
		"<title>2 &lt;policies&gt;</title>", "evictions &amp; kills", ">first&lt;<", ">50.5<", ">\ufffd<",
		`width="330.0"`, `M355.0 65h495.0`, // half of the scale, and a quarter to all of it
		`width="66.0"`, `width="0.0"`, `M190.0 171h0.0`,
	} {
		assert.Contains(t, text, want)
	}
	requireXML(t, &out)
}

func requireXML(t *testing.T, in io.Reader) {
	t.Helper()
	for decoder := xml.NewDecoder(in); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}
}
