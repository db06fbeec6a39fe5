package study

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxPart bounds the size of a part in bytes.
const maxPart = 32 << 20

// A Part has the results of one share of a study.
type Part struct {
	Spec    Spec     `json:"study"`
	Share   int      `json:"share"` // from 0
	Shares  int      `json:"shares"`
	Results []Result `json:"results"` // in the order of Spec.Runs
}

// String returns a short description for errors, "part 3 of 10" for share 3.
func (p *Part) String() string { return fmt.Sprintf("part %d of %d", p.Share, p.Shares) }

// Write writes the part as a line of JSON.
func (p *Part) Write(w io.Writer) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("study: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// ReadParts reads parts that follow each other, such as the logs of the pods of a Job. It
// returns an error if r has anything else, or a part is invalid.
func ReadParts(r io.Reader) (parts []*Part, err error) {
	limited := &io.LimitedReader{R: r}
	in := json.NewDecoder(limited)
	in.DisallowUnknownFields()
	for {
		limited.N = maxPart
		p := new(Part)
		err := in.Decode(p)
		switch {
		case errors.Is(err, io.EOF) && limited.N > 0:
			return parts, nil
		case limited.N == 0:
			return nil, fmt.Errorf("study: part %d in the file is larger than %d bytes", len(parts), maxPart)
		case err != nil:
			return nil, fmt.Errorf("study: part %d in the file: %w", len(parts), err)
		}
		if err := p.check(); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
}

// check returns an error if the part does not have the results of its share.
func (p *Part) check() error {
	err := p.Spec.Check()
	if err == nil {
		err = p.Spec.checkShare(p.Share, p.Shares)
	}
	if err != nil {
		return fmt.Errorf("study: %v: %w", p, err)
	}
	from, to := p.Spec.share(p.Share, p.Shares)
	if len(p.Results) != to-from {
		return fmt.Errorf("study: %v: %d results of %d runs", p, len(p.Results), to-from)
	}
	for i := range p.Results {
		if err := p.checkResult(&p.Results[i]); err != nil {
			run := p.Spec.run(from + i)
			return fmt.Errorf("study: %v: policy %s, seed %d: %w", p, run.Policy, run.Seed, err)
		}
	}
	return nil
}

func (p *Part) checkResult(r *Result) error {
	if len(r.Values) != len(p.Spec.Values) || len(r.Series) != len(p.Spec.Series) {
		return fmt.Errorf("%d values and %d series, not %d and %d", len(r.Values), len(r.Series), len(p.Spec.Values), len(p.Spec.Series))
	}
	for i, series := range r.Series {
		if len(series) != len(p.Results[0].Series[i]) || len(series) != len(r.Series[0]) {
			return fmt.Errorf("series %s has %d numbers, not %d", p.Spec.Series[i], len(series), len(p.Results[0].Series[0]))
		}
		for _, n := range series {
			if n < 0 {
				return fmt.Errorf("series %s has the negative number %d", p.Spec.Series[i], n)
			}
		}
	}
	return nil
}
