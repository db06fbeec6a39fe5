package fake

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits far above the values of any node, whose sums do not overflow.
const (
	maxCores = 1e4
	maxBytes = 1 << 50
)

// curve is an option for a Curve: the values of its points with their times, and "repeat".
func curve(name string, most float64, field func(*Behavior) *Curve) option[Behavior] {
	return option[Behavior]{
		name: name,
		format: func(b *Behavior) []string {
			c := field(b)
			var parts []string
			for i, p := range c.Points {
				at := formatAt(p.At)
				if i > 0 && p.At == 0 {
					at = "@0s" // without a time it would be another option
				}
				parts = append(parts, strconv.FormatFloat(p.Value, 'f', -1, 64)+at)
			}
			if c.Repeat {
				parts = append(parts, repeat)
			}
			return optional(len(parts) > 0, "="+strings.Join(parts, ";"))
		},
		parse: func(b *Behavior, a argument) error {
			c := field(b)
			if err := c.add(a.value, most, Point{At: a.at}); err != nil {
				return err
			}
			for _, text := range a.options {
				if text == repeat {
					c.Repeat = true
					continue
				}
				value, at, _ := strings.Cut(text, "@")
				d, err := parseDuration(at)
				if err == nil {
					err = c.add(value, most, Point{At: d})
				}
				if err != nil {
					return err
				}
			}
			if c.Repeat && c.period() == 0 {
				return errors.New("repeat needs a point later than 0")
			}
			return nil
		},
	}
}

const repeat = "repeat"

func (c *Curve) add(value string, most float64, p Point) (err error) {
	if n := len(c.Points); n > 0 && p.At < c.Points[n-1].At {
		return fmt.Errorf("%v is before the point before it", p.At)
	}
	p.Value, err = parseQuantity(value, most)
	c.Points = append(c.Points, p)
	return err
}

// units are the suffixes of quantities.
var units = []struct {
	suffix string
	factor float64
}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}

// parseQuantity parses a number with a unit, such as 64Mi and 250m.
func parseQuantity(text string, most float64) (float64, error) {
	number, factor := text, 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			number, factor = rest, u.factor
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if v *= factor; err != nil || !(v >= 0 && v <= most) { // NaN too
		return 0, fmt.Errorf("%q is not a number from 0 to %g, such as 5, 250m or 64Mi", text, most)
	}
	return v, nil
}
