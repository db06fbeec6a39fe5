package timeline

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// A Plot is a diagram of values over time, for example of the memory of a cluster.
type Plot struct {
	Title string
	Lines []Line

	// Max is the value at the top of the diagram. Zero means the highest value of its lines.
	Max int64

	// Label formats a value of the axis. If nil, it is a decimal number.
	Label func(value int64) string
}

// A Line is one line of a [Plot].
type Line struct {
	Name   string
	Points []Point // sorted by time
}

// A Point is a value, which must not be negative, at a time since the start.
type Point struct {
	At    time.Duration
	Value int64
}

// Sizes of a plot, in user units.
const (
	plotTitle  = 24 // height of the title of the image
	plotHeight = 110
	plotGap    = 34 // above each plot, for its title and legend
)

// lineColors are the colors of the lines of a plot, which also differ in lightness.
var lineColors = []string{"#2f6fb3", "#c0392b", "#3f9a5c", "#e0a13c", "#6b727b"}

// WritePlots writes diagrams as one SVG image with a title, below each other and with one time
// axis from zero to length. As an image of [Timeline.WriteSVG], it needs no style sheet, font or
// script. Lines after the fifth of a plot have the color of an earlier one.
func WritePlots(w io.Writer, title string, length time.Duration, plots []Plot) error {
	start := time.Unix(0, 0).UTC()
	s := &svg{bufio.NewWriter(w), chart{from: start, length: length}}
	bottom := svgTop + len(plots)*(plotGap+plotHeight)
	width, height := svgNames+svgPlot+svgRight, plotTitle+bottom+svgBottom/2
	s.begin(width, height, title)
	fmt.Fprintf(s, `<g transform="translate(0 %d)">`+"\n", plotTitle)
	s.axis(bottom)
	for i, p := range plots {
		s.plot(p, svgTop+i*(plotGap+plotHeight)+plotGap, start)
	}
	s.WriteString("</g></svg>\n")
	return s.Flush()
}

// begin writes the start of an image with a title.
func (s *svg) begin(width, height int, title string) {
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width, height, width, height)
	fmt.Fprintf(s, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	title = escape(sanitize(title, 160))
	fmt.Fprintf(s, `<title>%s</title><text x="8" y="%d" font-weight="bold" font-size="14" fill="#22272e">%s</text>`+"\n", title, plotTitle-4, title)
}

// plot draws a diagram whose plot area begins at top.
func (s *svg) plot(p Plot, top int, start time.Time) {
	label := p.Label
	if label == nil {
		label = func(v int64) string { return fmt.Sprint(v) }
	}
	most := p.Max
	for _, l := range p.Lines {
		for _, point := range l.Points {
			if p.Max == 0 {
				most = max(most, point.Value)
			}
		}
	}
	most = max(most, 1)
	title := top - 8 // the baseline of the title and the legend
	fmt.Fprintf(s, `<text x="8" y="%d" font-weight="bold" fill="#22272e">%s</text>`+"\n", title, escape(sanitize(p.Title, 80)))
	fmt.Fprintf(s, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#e3e6ea"/>`+"\n", svgNames, top, svgPlot, plotHeight)
	for _, tick := range []struct {
		y     int
		value int64
	}{{top + 9, most}, {top + plotHeight, 0}} {
		fmt.Fprintf(s, `<text x="%d" y="%d" text-anchor="end" fill="#555b63">%s</text>`+"\n", svgNames-6, tick.y, escape(sanitize(label(tick.value), 40)))
	}
	x := svgNames
	for i, l := range p.Lines {
		color, name := lineColors[i%len(lineColors)], sanitize(l.Name, 40)
		fmt.Fprintf(s, `<rect x="%d" y="%d" width="12" height="3" fill="%s"/><text x="%d" y="%d" fill="#555b63">%s</text>`+"\n", x, title-4, color, x+17, title, escape(name))
		x += 34 + 6*len([]rune(name))
		var points strings.Builder
		for _, point := range l.Points {
			height := float64(plotHeight * (float64(min(point.Value, most)) / float64(most))) // not fused with the subtraction
			fmt.Fprintf(&points, "%.1f,%.1f ", s.x(start.Add(point.At)), float64(top+plotHeight)-height)
		}
		fmt.Fprintf(s, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", strings.TrimSpace(points.String()), color)
	}
}
