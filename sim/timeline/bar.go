package timeline

import (
	"bufio"
	"fmt"
	"io"
)

// A BarGroup is a diagram of bars with one scale.
type BarGroup struct {
	Title string
	Bars  []Bar
}

// A Bar is one bar of a [BarGroup]. A negative number is drawn as zero.
type Bar struct {
	Name  string
	Value int64 // the length of the bar

	// Low and High are the ends of a line over the bar, for example the lowest and the
	// highest of the values of which Value is the mean. If both are zero, none is drawn.
	Low, High int64

	// Label is written behind the bar.
	Label string
}

// barLabel is the width for the labels behind bars.
const barLabel = 200

// WriteBars writes diagrams as one SVG image with a title, below each other. As an image of
// [Timeline.WriteSVG], it needs no style sheet, font or script.
func WriteBars(w io.Writer, title string, groups []BarGroup) error {
	s := &svg{Writer: bufio.NewWriter(w)}
	height := plotTitle + plotGap
	for _, g := range groups {
		height += plotGap + len(g.Bars)*svgLane
	}
	s.begin(svgNames+svgPlot+svgRight, height, title)
	y := plotTitle
	for _, g := range groups {
		y += plotGap
		fmt.Fprintf(s, `<text x="8" y="%d" font-weight="bold" fill="#22272e">%s</text>`+"\n", y-8, escape(sanitize(g.Title, 80)))
		most := int64(1)
		for _, b := range g.Bars {
			most = max(most, b.Value, b.High)
		}
		length := func(n int64) float64 {
			return float64((svgPlot - barLabel) * (float64(max(n, 0)) / float64(most))) // not fused with an addition
		}
		for i, b := range g.Bars {
			fmt.Fprintf(s, `<text x="22" y="%d" fill="#22272e">%s</text>`, y+svgBar-2, escape(truncateLeft(b.Name, svgLetters)))
			fmt.Fprintf(s, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, svgNames, y, length(b.Value), svgBar, lineColors[i%len(lineColors)])
			if b.Low != 0 || b.High != 0 {
				fmt.Fprintf(s, `<path d="M%.1f %dh%.1f" stroke="#22272e"/>`, svgNames+length(b.Low), y+svgBar/2, length(b.High)-length(b.Low))
			}
			fmt.Fprintf(s, `<text x="%.1f" y="%d" fill="#555b63">%s</text>`+"\n", svgNames+length(max(b.Value, b.High))+8, y+svgBar-2, escape(sanitize(b.Label, 40)))
			y += svgLane
		}
	}
	s.WriteString("</svg>\n")
	return s.Flush()
}
