package main

import (
	"fmt"
	"html"
	"io"
)

// Sizes of the picture, in its own units.
const (
	panelWidth  = 420
	rowHeight   = 34
	left        = 90 // of the plot: names of policies
	plotWidth   = panelWidth - left - 30
	titleHeight = 30
)

var colours = []string{"#6b7885", "#2f7fd0", "#3f9a5c", "#c9722e"}

// draw writes a picture of all studies: a panel for each measure, in it a row for each
// policy, in it a dot for each node, a box around the middle half of them, and a line
// at the median.
func draw(w io.Writer, studies []study) {
	height := 10
	for _, s := range studies {
		height += titleHeight + (len(s.measures)+1)/2*panelHeight(s)
	}
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="11">`+"\n", 2*panelWidth, height)
	fmt.Fprintf(w, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", 2*panelWidth, height)
	y := 10
	for _, s := range studies {
		fmt.Fprintf(w, `<text x="12" y="%d" font-weight="bold" font-size="13">%s</text>`+"\n", y+14, html.EscapeString(s.title))
		y += titleHeight
		for m := range s.measures {
			s.panel(w, m, m%2*panelWidth, y+m/2*panelHeight(s))
		}
		y += (len(s.measures) + 1) / 2 * panelHeight(s)
	}
	fmt.Fprintln(w, "</svg>")
}

func panelHeight(s study) int { return 46 + rowHeight*len(s.outcomes) }

func (s study) panel(w io.Writer, measure, x0, y0 int) {
	most := 0.0
	for _, o := range s.outcomes {
		figures := o.of(measure)
		most = max(most, figures[len(figures)-1])
	}
	if most == 0 {
		most = 1
	}
	x := func(v float64) float64 { return float64(x0+left) + v/most*plotWidth }
	fmt.Fprintf(w, `<text x="%d" y="%d" fill="#22272e">%s</text>`+"\n", x0+left, y0+12, html.EscapeString(s.measures[measure]))
	bottom := y0 + 20 + rowHeight*len(s.outcomes)
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(w, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e3e6ea"/><text x="%.1f" y="%d" text-anchor="middle" fill="#555b63">%.3g</text>`+"\n",
			x(v), y0+20, x(v), bottom, x(v), bottom+13, v)
	}
	for p, o := range s.outcomes {
		y := float64(y0 + 20 + rowHeight*p)
		colour := colours[p%len(colours)]
		fmt.Fprintf(w, `<text x="%d" y="%.1f" text-anchor="end" fill="#22272e">%s</text>`+"\n", x0+left-8, y+rowHeight/2+4, html.EscapeString(o.policy))
		figures := o.of(measure)
		for i, v := range figures { // side by side, or dots would hide each other
			fmt.Fprintf(w, `<circle cx="%.1f" cy="%.1f" r="1.8" fill="%s" fill-opacity="0.45"/>`, x(v), y+6+float64(i*7%23), colour)
		}
		low, middle, high := x(quantile(figures, 0.25)), x(quantile(figures, 0.5)), x(quantile(figures, 0.75))
		fmt.Fprintf(w, "\n"+`<rect x="%.1f" y="%.1f" width="%.1f" height="22" fill="none" stroke="%s"/><line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="3"><title>median %.1f</title></line>`+"\n",
			low, y+6, high-low, colour, middle, y+4, middle, y+30, colour, quantile(figures, 0.5))
	}
}
