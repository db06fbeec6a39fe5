package timeline

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Sizes of an image, in user units (pixels if it is not scaled).
const (
	svgNames   = 190 // width of the names on the left
	svgPlot    = 860 // width of the plot
	svgRight   = 40  // space for the last label of the axis
	svgTop     = 22
	svgLane    = 24 // height of a lane
	svgBar     = 14 // height of a bar in it
	svgGap     = 10 // between pods
	svgBottom  = 58 // axis and legend
	svgLetters = 24 // maximum length of a name
)

// colors of states. They also differ in lightness, for readers with color blindness.
var colors = map[Kind]string{
	Waiting: "#d5d9de", BackOff: "url(#backoff)", Running: "#8ab8e8", Ready: "#3f9a5c", PodReady: "#3f9a5c",
}

// phaseColors are the colors of phases, by the first word of the phase.
var phaseColors = map[string]string{
	"Pending": "#e6e9ed", "Running": "#cfe3f7", "Succeeded": "#d3ecd9", "Failed": "#f6d0cb",
}

// An svg writes an image. Texts from marks must be passed through sanitize and escape.
type svg struct {
	*bufio.Writer
	chart
}

// WriteSVG writes the timeline as an SVG image: a row for each pod with its phase and
// readiness, one for each of its containers, and a time axis. The image needs no style
// sheet, font or script, and can be embedded in an HTML page. Each mark has a title with
// its details, which browsers display as a tooltip.
func (t Timeline) WriteSVG(w io.Writer) error {
	rows, from, until := t.lanes()
	s := &svg{bufio.NewWriter(w), chart{from: from, length: until.Sub(from)}}
	y, tops := svgTop, make([]int, len(rows))
	for i, l := range rows {
		if i > 0 && l.pod != rows[i-1].pod {
			y += svgGap
		}
		tops[i] = y
		y += svgLane
	}
	width, height := svgNames+svgPlot+svgRight, y+svgBottom
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width, height, width, height)
	s.WriteString(`<defs><pattern id="backoff" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<rect width="6" height="6" fill="#fbe7c3"/><rect width="2.5" height="6" fill="#e0a13c"/></pattern></defs>` + "\n")
	fmt.Fprintf(s, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	s.axis(y)
	for i, l := range rows {
		s.lane(l, tops[i])
	}
	s.legend(y + 44)
	s.WriteString("</svg>\n")
	return s.Flush()
}

// x returns the x coordinate of a time.
func (s *svg) x(at time.Time) float64 {
	if s.length <= 0 {
		return svgNames
	}
	return svgNames + svgPlot*float64(at.Sub(s.from))/float64(s.length)
}

func (s *svg) axis(bottom int) {
	step := tick(s.length, 10)
	for n := range s.length/step + 1 {
		at := n * step
		x := s.x(s.from.Add(at))
		fmt.Fprintf(s, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e3e6ea"/>`, x, svgTop-6, x, bottom+4)
		fmt.Fprintf(s, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555b63">%s</text>`+"\n", x, bottom+18, elapsed(at))
	}
	fmt.Fprintf(s, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#9aa1aa"/>`+"\n", svgNames, bottom+4, svgNames+svgPlot, bottom+4)
}

func (s *svg) lane(l *lane, top int) {
	name, full, indent, weight, bar := l.container, l.pod+" "+l.container, 22, "normal", top+(svgLane-svgBar)/2
	switch {
	case l.pod == "" && l.container == "":
		name, full, indent, weight = "node", "node", 8, "bold"
	case l.container == "":
		name, full, indent, weight = l.pod, l.pod, 8, "bold"
	}
	fmt.Fprintf(s, `<text x="%d" y="%d" font-weight="%s" fill="#22272e">%s<title>%s</title></text>`+"\n",
		indent, bar+svgBar-3, weight, escape(truncateLeft(name, svgLetters)), escape(sanitize(full, 400)))
	for _, p := range l.spans {
		s.span(p, bar, svgBar)
	}
	for _, p := range l.ready {
		s.rect(p, bar+svgBar+1, 3, colors[PodReady], "ready")
	}
	drawn := map[Kind]float64{} // x coordinate of the last moment of each kind
	for _, m := range l.moments {
		x, scale := s.x(m.At), ""
		if last, ok := drawn[m.Kind]; ok && x-last < svgBar/2 {
			scale = " scale(0.4)" // many full-size symbols would hide the bars
		}
		drawn[m.Kind] = x
		s.moment(m, x, bar, scale)
	}
}

func (s *svg) span(p span, y, height int) {
	m := Mark{Kind: p.kind, Text: p.text}
	if p.kind != Phase {
		if color := colors[p.kind]; color != "" {
			s.rect(p, y, height, color, m.description())
		}
		return
	}
	phase, _, _ := strings.Cut(p.text, " ")
	color := phaseColors[phase]
	if color == "" {
		color = "#eeeeee"
	}
	s.rect(p, y, height, color, m.description())
	name := sanitize(p.text, 60)
	if s.x(p.until)-s.x(p.from) > float64(utf8.RuneCountInString(name)*6+6) {
		fmt.Fprintf(s, `<text x="%.1f" y="%d" fill="#22272e" pointer-events="none">%s</text>`+"\n", s.x(p.from)+4, y+height-3, escape(name))
	}
}

// rect draws a bar, at least half a unit wide so that it is visible.
func (s *svg) rect(p span, y, height int, fill, title string) {
	fmt.Fprintf(s, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s</title></rect>`+"\n",
		s.x(p.from), y, max(s.x(p.until)-s.x(p.from), 0.5), height, fill,
		escape(fmt.Sprintf("%s, from %s to %s (%s)", title, elapsed(p.from.Sub(s.from)), elapsed(p.until.Sub(s.from)), elapsed(p.until.Sub(p.from)))))
}

// symbols of moments, centered at the origin and about as high as a bar.
var symbols = map[Kind]string{
	Exited:    `<path d="M-4-4L4 4M-4 4L4-4" stroke="#c0392b" stroke-width="2.2"/>`,
	Succeeded: `<circle r="4" fill="#ffffff" stroke="#2d7a46" stroke-width="2"/>`,
	Kill:      `<path d="M0 7L-5-1H5Z" fill="#22272e" stroke="#ffffff"/>`,
	Probe:     `<path d="M0-6L5.5 4H-5.5Z" fill="#f0b429" stroke="#8a6100"/>`,
	Fault:     `<path d="M1-8L-4 1H0L-1 8L4-1H0Z" fill="#8e44ad"/>`,
	Agent:     `<path d="M0-6L6 0L0 6L-6 0Z" fill="#22272e"/>`,
	Deleted:   `<path d="M0-7V7" stroke="#22272e" stroke-width="2"/>`,
	Unready:   `<circle r="2.5" fill="#c0392b"/>`,
	Condition: `<path d="M0 3V8" stroke="#6b727b"/>`,
	Note:      `<circle r="3.2" fill="#6b727b" stroke="#ffffff"/>`,
}

func symbol(w Kind) string {
	if s := symbols[w]; s != "" {
		return s
	}
	return symbols[Note]
}

func (s *svg) moment(m Mark, x float64, bar int, scale string) {
	fmt.Fprintf(s, `<g transform="translate(%.1f %d)%s">%s<title>%s</title></g>`+"\n",
		x, bar+svgBar/2, scale, symbol(m.Kind), escape(elapsed(m.At.Sub(s.from))+": "+m.description()))
}

func (s *svg) legend(y int) {
	x := svgNames
	for _, e := range []struct {
		what Kind
		text string
	}{
		{Waiting, "waits"}, {BackOff, "backs off"}, {Running, "runs"}, {Ready, "ready"}, {Exited, "failed"},
		{Succeeded, "succeeded"}, {Kill, "stop requested"}, {Probe, "probe failed"}, {Fault, "fault"}, {Agent, "agent"}, {Note, "note"},
	} {
		if color := colors[e.what]; color != "" {
			fmt.Fprintf(s, `<rect x="%d" y="%d" width="12" height="10" fill="%s"/>`, x, y-9, color)
		} else {
			fmt.Fprintf(s, `<g transform="translate(%d %d)">%s</g>`, x+6, y-4, symbol(e.what))
		}
		fmt.Fprintf(s, `<text x="%d" y="%d" fill="#555b63">%s</text>`+"\n", x+17, y, e.text)
		x += 34 + 6*len(e.text)
	}
}

// escape escapes sanitized text for XML.
func escape(text string) string { return escapes.Replace(text) }

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")
