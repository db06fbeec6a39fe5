package credentials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// A Keyring finds the credentials for an image.
//
// Lookup returns them in the order in which they are to be tried, none if the
// image is to be pulled without. The error tells of sources that could not be
// asked, or not be read in full; what the others have is returned beside it, so
// a caller tries that and reports the error if the pull fails. The error is not
// about the pull, and holds no secrets.
//
// Pod is the pod that wants the image; nil for none, which leaves out what is
// given to pods. Lookup obeys ctx, may be called from many goroutines, and does
// not keep pod. The caller owns the slice.
type Keyring interface {
	Lookup(ctx context.Context, image string, pod *v1.Pod) ([]Credential, error)
}

// A Union asks keyrings one after another and returns all they have, in their
// order. The kubelet's order is the pull secrets of the pod, then the files of
// the node, then the plugins. Nil keyrings have nothing.
type Union []Keyring

// Lookup implements Keyring. Once ctx has ended it asks no more of them.
func (u Union) Lookup(ctx context.Context, image string, pod *v1.Pod) ([]Credential, error) {
	var creds []Credential
	var errs []error
	for _, k := range u {
		if k == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			errs = append(errs, fmt.Errorf("credentials: look up %q: %w", image, err))
			break
		}
		some, err := k.Lookup(ctx, image, pod)
		creds = append(creds, some...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return creds, errors.Join(errs...)
}

// An entry is a credential and what it is for.
type entry struct {
	pattern pattern
	cred    Credential
}

// pick returns the credentials of the entries that match, the most specific
// first: in reverse order of their keys, by which reg.io/team goes before reg.io,
// and both before *.io. Entries with the same key keep their order; each is
// returned, for one of them may be the old password.
func pick(entries []entry, t target) []Credential {
	var hits []entry
	for _, e := range entries {
		if e.pattern.matches(t) {
			hits = append(hits, e)
		}
	}
	slices.SortStableFunc(hits, func(a, b entry) int {
		return strings.Compare(b.pattern.key, a.pattern.key)
	})
	var creds []Credential
	for _, e := range hits {
		creds = append(creds, e.cred)
	}
	return creds
}

// from returns the entries with their source set.
func from(entries []entry, s Source) []entry {
	out := slices.Clone(entries)
	for i := range out {
		out[i].cred.Source = s
	}
	return out
}
