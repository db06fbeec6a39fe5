package study

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// A Report has the results of all runs of a study. Equal runs give equal reports, whatever the
// number of shares was.
type Report struct {
	Spec    Spec
	Results []Result // in the order of Spec.Runs(0, 1)
}

// Merge returns the report of the parts of a study, which may be in any order. It returns an
// error that names every part that is missing, occurs more than once, or is of another study or
// another number of shares than the first part.
func Merge(parts []*Part) (*Report, error) {
	if len(parts) == 0 {
		return nil, errors.New("study: no parts")
	}
	for _, p := range parts {
		if err := p.check(); err != nil {
			return nil, err
		}
	}
	first, byShare := parts[0], make([]*Part, parts[0].Shares)
	var errs []error
	for _, p := range parts {
		switch foreign := differences(first, p); {
		case foreign != "":
			errs = append(errs, fmt.Errorf("%v is of another study than %v: %s", p, first, foreign))
		case byShare[p.Share] != nil:
			errs = append(errs, fmt.Errorf("%v occurs more than once", p))
		default:
			byShare[p.Share] = p
		}
	}
	r := &Report{Spec: first.Spec}
	for i, p := range byShare {
		if p == nil {
			errs = append(errs, fmt.Errorf("%v is missing", &Part{Share: i, Shares: first.Shares}))
			continue
		}
		r.Results = append(r.Results, p.Results...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("study: merge %s: %w", first.Spec.Name, err)
	}
	// Each part has series of one length; those of different parts may differ.
	whole := &Part{Spec: r.Spec, Shares: 1, Results: r.Results}
	if err := whole.check(); err != nil {
		return nil, err
	}
	return r, nil
}

// differences returns the fields in which the study of b differs from that of a; empty if they
// are equal.
func differences(a, b *Part) string {
	var out []string
	if a.Shares != b.Shares {
		out = append(out, fmt.Sprintf("%d shares, not %d", b.Shares, a.Shares))
	}
	x, y := reflect.ValueOf(a.Spec), reflect.ValueOf(b.Spec)
	for i := range x.NumField() {
		if is, want := y.Field(i).Interface(), x.Field(i).Interface(); !reflect.DeepEqual(is, want) {
			out = append(out, fmt.Sprintf("%s %.80q, not %.80q", x.Type().Field(i).Name, fmt.Sprint(is), fmt.Sprint(want)))
		}
	}
	return strings.Join(out, "; ")
}
