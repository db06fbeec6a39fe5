package oracle

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Measures of the drawing, in pixels.
const (
	svgLeft, svgRow, svgWidth = 190, 22, 1000
)

// drawSVG draws the timeline of a recording: a row for each container with the times in which
// its instances ran, a row for the phase of each pod, and lines for steps and violations.
func drawSVG(run *Recording, violations []Violation) string {
	var end time.Duration
	for _, r := range run.Records {
		end = max(end, r.At)
	}
	x := func(at time.Duration) float64 {
		return svgLeft + float64(svgWidth-svgLeft-10)*at.Seconds()/max(end.Seconds(), 1)
	}
	names := podsOf(run)
	rows := map[string]int{}
	var order []string
	row := func(name string) int {
		if _, ok := rows[name]; !ok {
			rows[name] = len(order)
			order = append(order, name)
		}
		return 40 + rows[name]*svgRow
	}
	var b strings.Builder
	bar := func(name, class string, from, to time.Duration, text string) {
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"><title>%s %.1fs to %.1fs: %s</title></rect>`+"\n",
			class, x(from), row(name)+4, max(x(to)-x(from), 1.5), svgRow-8, html.EscapeString(name), from.Seconds(), to.Seconds(), html.EscapeString(text))
	}
	type open struct {
		from  time.Duration
		class string
		text  string
	}
	phases, running := map[types.UID]open{}, map[string]open{}
	for _, r := range run.Records {
		switch {
		case r.Pod != nil:
			uid, name := r.Pod.Pod.UID, r.Pod.Pod.Name
			phase := strings.ToLower(string(r.Pod.Pod.Status.Phase))
			row(name)
			if was, ok := phases[uid]; ok && (was.class != phase || r.Pod.Deleted) {
				bar(name, was.class, was.from, r.At, was.text)
				delete(phases, uid)
			}
			if _, ok := phases[uid]; !ok && !r.Pod.Deleted {
				phases[uid] = open{r.At, phase, phase}
			}
		case r.Change != nil && r.Change.Container != "":
			name := names[r.Change.Pod] + "/" + r.Change.Container
			if was, ok := running[r.Change.ID]; ok {
				bar(name, "run", was.from, r.At, changeText(names, r.Change))
				delete(running, r.Change.ID)
			}
			if r.Change.To == "running" {
				running[r.Change.ID] = open{from: r.At}
			}
		}
	}
	for uid, was := range phases {
		bar(names[uid], was.class, was.from, end, was.text)
	}
	height := 40 + len(order)*svgRow + 30
	var head strings.Builder
	fmt.Fprintf(&head, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">
<style>.pending{fill:#e3b341}.running{fill:#9ecbff}.run{fill:#2f81f7}.succeeded{fill:#3fb950}.failed{fill:#d1242f}.step{stroke:#8b949e;stroke-dasharray:3}.violation{stroke:#d1242f;stroke-width:2}</style>
<text x="8" y="16">%s</text>
`, svgWidth, height, html.EscapeString("kubelet "+run.Kubelet))
	for _, name := range order {
		fmt.Fprintf(&head, `<text x="8" y="%d">%s</text>`+"\n", row(name)+15, html.EscapeString(name))
	}
	mark := func(class string, at time.Duration, text string) {
		fmt.Fprintf(&b, `<line class="%s" x1="%.1f" x2="%.1f" y1="30" y2="%d"><title>%.1fs %s</title></line>`+"\n", class, x(at), x(at), height-24, at.Seconds(), html.EscapeString(text))
	}
	for _, r := range run.Records {
		if r.Step != nil {
			mark("step", r.At, *r.Step)
		}
	}
	for _, v := range violations {
		mark("violation", v.At, v.String())
		fmt.Fprintf(&b, `<text x="%.1f" y="28" fill="#d1242f" text-anchor="%s">%s</text>`+"\n", x(v.At), anchor(x(v.At)), html.EscapeString(v.Invariant))
	}
	for _, at := range slices.Collect(ticks(end)) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%gs</text>`+"\n", x(at), height-8, at.Seconds())
	}
	return head.String() + b.String() + "</svg>\n"
}

func anchor(x float64) string {
	if x > svgWidth*2/3 {
		return "end"
	}
	return "start"
}

// ticks yields about eight round times until end.
func ticks(end time.Duration) func(yield func(time.Duration) bool) {
	unit := max((end / 8).Truncate(5*time.Second), time.Second)
	return func(yield func(time.Duration) bool) {
		for at := time.Duration(0); at <= end; at += unit {
			if !yield(at) {
				return
			}
		}
	}
}
