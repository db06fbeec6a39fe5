package credentials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// A Keyring supplies the credentials for an image.
//
// Lookup returns them in the order in which they should be tried; if there are none, the image
// should be pulled anonymously. An error reports sources that failed in whole or in part;
// credentials are returned with it, so a caller should try them and report the error if the
// pull fails. Errors contain no secret data.
//
// pod is the pod that uses the image. If nil, credentials of pods are omitted. Lookup must
// return when ctx is done, be safe for concurrent use, and not retain pod. The caller owns the
// returned slice.
type Keyring interface {
	Lookup(ctx context.Context, image string, pod *v1.Pod) ([]Credential, error)
}

// A Union is a keyring with the credentials of several, in their order. The kubelet's order is
// the pull secrets of the pod, the files of the node, the plugins. Nil keyrings are ignored.
type Union []Keyring

// Lookup implements Keyring. It calls the keyrings in turn until ctx is done.
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

// An entry is a credential and the images it is for.
type entry struct {
	pattern pattern
	cred    Credential
}

// matching returns the credentials of the entries that match, most specific first: in reverse
// order of their keys, so that reg.io/team precedes reg.io, and both precede *.io. All entries
// with the same key are returned, in their order: one of them may have an old password.
func matching(entries []entry, t target) []Credential {
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

// withSource returns a copy of the entries with the source.
func withSource(entries []entry, s Source) []entry {
	out := slices.Clone(entries)
	for i := range out {
		out[i].cred.Source = s
	}
	return out
}
