//go:build unix

package footprint

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A cell is a figure of a program with a number of pods.
type cell struct {
	pods    int
	subject string
	figure  figure
}

// A report contains the results of all runs.
type report struct {
	on       time.Time
	options  options
	versions map[string]string // of containerd and the programs
	loads    []float64         // load averages before the measurements
	values   map[cell][]float64
}

func (r *report) add(pods int, subject string, f figures) {
	for figure, value := range f {
		c := cell{pods, subject, figure}
		r.values[c] = append(r.values[c], value)
	}
}

// markdown returns a table for each number of pods.
func (r *report) markdown() string {
	var b strings.Builder
	mode := "static pods"
	if r.options.cluster {
		mode = "pods of an API server"
	}
	fmt.Fprintf(&b, "%s, %s, containerd %s", r.on.Format(time.DateOnly), mode, r.versions["containerd"])
	for _, subject := range r.options.only {
		if v := r.versions[subject]; v != "" {
			fmt.Fprintf(&b, ", %s %s", subject, v)
		}
	}
	fmt.Fprintf(&b, ". Idle: %v, %v after the last start.", r.options.window, r.options.settle)
	if r.options.repeat > 1 {
		fmt.Fprintf(&b, " Median of %d runs, with minimum and maximum.", r.options.repeat)
	}
	if len(r.loads) > 0 {
		fmt.Fprintf(&b, " Load average of the machine before the measurements: %.1f to %.1f.", slices.Min(r.loads), slices.Max(r.loads))
	}
	b.WriteString("\n")
	for _, pods := range r.options.pods {
		fmt.Fprintf(&b, "\n| %d pods |", pods)
		for _, subject := range r.options.only {
			fmt.Fprintf(&b, " %s |", subject)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(r.options.only)) + "\n")
		for _, figure := range tableFigures {
			r.row(&b, pods, figure)
		}
	}
	return b.String()
}

// row writes a figure of all programs, unless none has it.
func (r *report) row(b *strings.Builder, pods int, figure figure) {
	var cells []string
	empty := true
	for _, subject := range r.options.only {
		values := r.values[cell{pods, subject, figure}]
		empty = empty && len(values) == 0
		cells = append(cells, format(figure.format, values))
	}
	if !empty {
		fmt.Fprintf(b, "| %s | %s |\n", strings.TrimSpace(figure.name), strings.Join(cells, " | "))
	}
}

// format returns a value, or the median of several with their minimum and maximum: "2.0 s (1.0 to 3.0)".
func format(layout string, values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	sorted := slices.Sorted(slices.Values(values))
	median := fmt.Sprintf(layout, sorted[len(sorted)/2])
	if len(sorted) == 1 {
		return median
	}
	number, _, _ := strings.Cut(layout, " ")
	return fmt.Sprintf("%s ("+number+" to "+number+")", median, sorted[0], sorted[len(sorted)-1])
}
