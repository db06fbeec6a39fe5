package page

import (
	"fmt"
	"strings"
)

// A chart is the drawing of a signal in an SVG of chartWidth by chartHeight: the available
// amount over time, from zero to the capacity, with a line for each threshold.
type chart struct {
	Label    string // text alternative
	Area     string // points of a polygon; empty: there are no measurements
	Trace    string // points of its upper edge
	Lines    []mark
	Category category
}

// A mark is a threshold in a chart.
type mark struct {
	Y    string
	Soft bool
}

const (
	chartWidth  = 300
	chartHeight = 64
)

func (s *Signal) chart() chart {
	c := chart{Label: s.Name + ": " + s.words(), Category: s.category()}
	top := s.Capacity
	for _, p := range s.Points {
		top = max(top, p.Available)
	}
	y := func(v int64) float64 {
		return chartHeight - 1 - float64(min(max(v, 0), top))/float64(max(top, 1))*(chartHeight-2)
	}
	for _, l := range s.Lines {
		c.Lines = append(c.Lines, mark{fmt.Sprintf("%.1f", y(l.At)), l.Soft})
	}
	if len(s.Points) == 0 {
		return c
	}
	points := s.Points
	if len(points) == 1 { // a line needs two points
		points = []Point{points[0], points[0]}
		points[0].At = points[0].At.Add(-1)
	}
	from := points[0].At
	span := points[len(points)-1].At.Sub(from)
	var trace []string
	for _, p := range points {
		x := float64(p.At.Sub(from)) / float64(max(span, 1)) * chartWidth
		trace = append(trace, fmt.Sprintf("%.1f,%.1f", x, y(p.Available)))
	}
	c.Trace = strings.Join(trace, " ")
	c.Area = fmt.Sprintf("0,%d %s %d,%d", chartHeight, c.Trace, chartWidth, chartHeight)
	return c
}

// now returns the last measurement.
func (s *Signal) now() (int64, bool) {
	if len(s.Points) == 0 {
		return 0, false
	}
	return s.Points[len(s.Points)-1].Available, true
}

// words describes the last measurement.
func (s *Signal) words() string {
	is, known := s.now()
	switch {
	case !known:
		return "not measured yet"
	case s.Capacity <= 0:
		return s.Unit.words(is) + " available"
	}
	return fmt.Sprintf("%s of %s available (%d %%)", s.Unit.words(is), s.Unit.words(s.Capacity), percent(is, s.Capacity))
}

// thresholds describes when pods are evicted.
func (s *Signal) thresholds() string {
	if len(s.Lines) == 0 {
		return "No eviction threshold is set."
	}
	var all []string
	for _, l := range s.Lines {
		text := "Pods are evicted below " + l.Text
		if strings.HasSuffix(l.Text, "%") {
			text += " (" + s.Unit.words(l.At) + ")"
		}
		if l.Soft {
			text += " for " + age(l.Wait)
		}
		all = append(all, text+".")
	}
	return strings.Join(all, " ")
}

// category returns failing if a threshold is met, and waiting if less than 1.5 times a
// threshold is available.
func (s *Signal) category() category {
	is, known := s.now()
	if s.Met != "" {
		return failing
	}
	for _, l := range s.Lines {
		if known && is < l.At+l.At/2 {
			return waiting
		}
	}
	return healthy
}

func percent(part, whole int64) int {
	if whole <= 0 {
		return 0
	}
	return int(float64(part) / float64(whole) * 100)
}
