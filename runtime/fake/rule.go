package fake

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Rule applies a fault to matching calls. The zero value fails every call.
type Rule struct {
	// Call selects calls by Method, Pod, Container and Image; empty matches any.
	Call Call

	// After is the number of matching calls without a fault at the beginning. Count, if
	// above zero, is the maximum number of faults. Probability, if above zero, is the
	// probability of a fault, determined by the seed as in [Random].
	After, Count int
	Probability  float64

	// Fault is the fault. If it is none, calls fail with an [Error] of code Unknown.
	Fault Fault
}

// Faults returns a function that returns the fault of the first rule that applies to a
// call. Probabilities depend on the seed.
func Faults(rules []Rule, seed uint64) func(Call) Fault {
	list := make([]func(Call) Fault, len(rules))
	for i, r := range rules {
		list[i] = r.faults(seed + uint64(i)<<32)
	}
	return First(list...)
}

func (r Rule) faults(seed uint64) func(Call) Fault {
	fault := r.Fault
	if fault.None() {
		fault.Err = &Error{Code: "Unknown", Message: "injected fault"}
	}
	faults := Always(fault)
	if r.Probability > 0 {
		faults = Random(seed, r.Probability, fault)
	}
	if r.Count > 0 {
		faults = Times(r.Count, faults)
	}
	if r.After > 0 {
		faults = After(r.After, faults)
	}
	return If(r.matches, faults)
}

func (r Rule) matches(c Call) bool {
	w := r.Call
	return (w.Method == "" || w.Method == c.Method) && (w.Pod == "" || w.Pod == c.Pod) &&
		(w.Container == "" || w.Container == c.Container) && (w.Image == "" || w.Image == c.Image)
}

// ruleOptions are the options of the text of a Rule.
var ruleOptions = []option[Rule]{
	text("pod", func(r *Rule) *string { return (*string)(&r.Call.Pod) }),
	text("container", func(r *Rule) *string { return &r.Call.Container }),
	text("image", func(r *Rule) *string { return &r.Call.Image }),
	number("after", math.MaxInt32, func(r *Rule) *int { return &r.After }),
	number("count", math.MaxInt32, func(r *Rule) *int { return &r.Count }),
	{name: "probability", format: formatProbability, parse: parseProbability},
	duration("delay", func(r *Rule) *time.Duration { return &r.Fault.Delay }),
	flag("lost", func(r *Rule) *bool { return &r.Fault.Lost }),
	flag("hang", func(r *Rule) *bool { return &r.Fault.Hang }),
	duration("stale", func(r *Rule) *time.Duration { return &r.Fault.Stale }),
	{name: "error", format: formatError, parse: parseError},
}

// String returns the text of r, as in a [Script]: the method, or "*" for any, and options.
func (r Rule) String() string {
	method := r.Call.Method
	if method == "" {
		method = anyMethod
	}
	return strings.Join(append([]string{method}, format(&r, ruleOptions)...), " ")
}

// anyMethod is the name of any method.
const anyMethod = "*"

func ruleOf(words []string) (r Rule, err error) {
	if len(words) == 0 || strings.ContainsAny(words[0], "=@;\"") {
		return r, errors.New("want the name of a method, or *")
	}
	if words[0] != anyMethod {
		r.Call.Method = words[0]
	}
	if _, err := parse(&r, ruleOptions, words[1:]); err != nil {
		return r, err
	}
	if r.Fault.Hang && r.Fault.Err != nil {
		return r, errors.New("a call that hangs has no error")
	}
	return r, nil
}

func formatProbability(r *Rule) []string {
	return optional(r.Probability != 0, "="+strconv.FormatFloat(r.Probability, 'g', -1, 64))
}

func parseProbability(r *Rule, a argument) (err error) {
	if r.Probability, err = strconv.ParseFloat(a.value, 64); err != nil || !(r.Probability >= 0 && r.Probability <= 1) { // NaN too
		return fmt.Errorf("%q is not a number from 0 to 1", a.value)
	}
	return a.only(true, false)
}

func formatError(r *Rule) []string {
	if r.Fault.Err == nil {
		return nil
	}
	text := "=" + quote(r.Fault.Err.Error())
	var e *Error
	if errors.As(r.Fault.Err, &e) && e.Code != "" {
		text += ";code=" + quote(e.Code)
	}
	return []string{text}
}

var errorOptions = []option[Error]{text("code", func(e *Error) *string { return &e.Code })}

func parseError(r *Rule, a argument) error {
	e := &Error{Message: a.value}
	r.Fault.Err = e
	_, err := parse(e, errorOptions, a.options)
	return err
}
