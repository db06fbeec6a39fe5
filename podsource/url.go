package podsource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

// A URLConfig says where manifests are fetched.
type URLConfig struct {
	// URL of a Pod or a PodList, http or https. Required. A password in it is
	// sent, and shown nowhere.
	URL string

	// NodeName is the node whose pods these are. Required.
	NodeName string

	// Header is sent with each request.
	Header http.Header

	// Period between two requests. 0: 20 s.
	Period time.Duration

	// Client makes the requests. Nil: one that gives up after 10 s (src-30).
	Client *http.Client

	// Logger; nil discards.
	Logger *slog.Logger

	// Hooks observe. The path of a problem is the URL, with "#namespace/name"
	// if it is one pod of a list.
	Hooks ManifestHooks
}

// An answer is what a server said, without the body.
type response struct {
	etag, modified string
	sum            [32]byte // of the body
}

const defaultTimeout = 10 * time.Second

// A URL is a PodSource of manifests that a web server has: a Pod or a PodList,
// YAML or JSON, made static by [Static], but that they have no toleration more
// than they say (src-19).
//
// Requests are conditional, so that a server which knows ETag or Last-Modified
// sends only what has changed. What cannot be fetched or read leaves all as it
// is (src-30); a pod of a list that cannot be used harms no other, and keeps its
// last good version.
type URL struct {
	cfg      URLConfig
	redacted string // the URL without its password

	// Owned by whoever calls Read, one at a time.
	last      response        // that could be read
	manifests []manifestState // in the order of the list
	pods      []*v1.Pod       // what is in force of them
	good      time.Time       // when the URL could be read last; zero: never

	problems problemTracker
}

// NewURL checks cfg. It asks for nothing.
func NewURL(cfg URLConfig) (*URL, error) {
	if cfg.URL == "" {
		return nil, errors.New("podsource: URLConfig.URL is empty")
	}
	if cfg.NodeName == "" {
		return nil, errors.New("podsource: URLConfig.NodeName is empty")
	}
	if err := checkNodeName("URLConfig", cfg.NodeName); err != nil {
		return nil, err
	}
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errors.New("podsource: URLConfig.URL is no URL") // the error has the password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("podsource: URLConfig.URL is %q, which is not http:// or https:// and a host", u.Redacted())
	}
	if cfg.Period < 0 {
		return nil, fmt.Errorf("podsource: URLConfig.Period is %v", cfg.Period)
	}
	cfg.Period = cmp.Or(cfg.Period, defaultPeriod)
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: defaultTimeout}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Header = cfg.Header.Clone()
	return &URL{cfg: cfg, redacted: u.Redacted(), problems: problemTracker{logger: cfg.Logger, hooks: cfg.Hooks}}, nil
}

// Problems returns what cannot be used at present: the URL as a whole, or pods of
// its list. It may be called at any time.
func (u *URL) Problems() []Problem { return u.problems.list() }

// Run asks at once, and then each Period, and delivers the pods when they change.
// It never fails: what cannot be fetched now may be later.
func (u *URL) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	var sent []*v1.Pod
	synced, rest := false, firstRetry
	for {
		pods, err := u.Read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		wait := u.cfg.Period
		switch {
		case err == nil && (!synced || !slices.Equal(sent, pods)):
			synced, sent = true, pods
			set(slices.Clone(pods))
		case err != nil && !synced: // whoever waits for the first set waits for no whole period
			wait = min(wait, rest)
			rest = min(2*rest, lastRetry)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// Read asks once and returns the pods in force, in the order of the list. It is
// the step under Run, for programs that have a loop of their own; not to be called
// while Run runs.
//
// An error means that there is no set to deliver: nothing could be fetched, what
// was fetched is no manifest, or it is a single one that has never been good.
// Other pods that cannot be used are no error but a [Problem].
func (u *URL) Read(ctx context.Context) ([]*v1.Pod, error) {
	body, a, fresh, err := u.fetch(ctx)
	now := time.Now()
	var items []manifest.Item
	if err == nil && fresh && len(body) > 0 {
		items, err = manifest.Split(body)
	}
	if err != nil {
		err = fmt.Errorf("podsource: %s: %w", u.redacted, err)
		if ctx.Err() == nil {
			u.pods = u.problems.publish(u.manifests, now, &Problem{Path: u.redacted, Err: err, LastGood: u.good})
		}
		return nil, err
	}
	u.good, u.last = now, a
	if !fresh {
		for i := range u.manifests {
			if u.manifests[i].err == nil {
				u.manifests[i].good = now
			}
		}
	} else {
		u.updateManifests(items, now)
	}
	var empty *Problem
	if a.sum == sha256.Sum256(nil) {
		// Said, but hardly meant (src-31).
		empty = &Problem{Path: u.redacted, Err: fmt.Errorf("podsource: %s: the answer is empty: no pod is wanted", u.redacted)}
	}
	u.pods = u.problems.publish(u.manifests, now, empty)
	if len(u.manifests) == 1 && u.manifests[0].path == u.redacted && u.manifests[0].pod == nil {
		return nil, u.manifests[0].err
	}
	return slices.Clone(u.pods), nil
}

// judge makes what is known of the list what the items say.
func (u *URL) updateManifests(items []manifest.Item, now time.Time) {
	known := make(map[string]manifestState, len(u.manifests))
	for _, m := range u.manifests {
		known[m.path] = m
	}
	u.manifests = nil
	for _, it := range items {
		m := known[u.redacted+it.Name]
		m.path = u.redacted + it.Name
		if m, ok := updateManifest(m, it.Data, nil, func(data []byte) (*v1.Pod, error) {
			return manifest.Static(data, u.cfg.NodeName, "url:"+u.redacted, manifest.StaticOptions{NoToleration: true})
		}, now); ok {
			u.manifests = append(u.manifests, m)
		}
	}
}

// fetch returns what the server has, or that it is not fresh: what it was.
func (u *URL) fetch(ctx context.Context) (body []byte, a response, fresh bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.cfg.URL, nil)
	if err != nil {
		return nil, a, false, errors.New("is no URL that can be asked")
	}
	maps.Copy(req.Header, u.cfg.Header)
	read := !u.good.IsZero()
	if read && u.last.etag != "" {
		req.Header.Set("If-None-Match", u.last.etag)
	}
	if read && u.last.modified != "" {
		req.Header.Set("If-Modified-Since", u.last.modified)
	}
	res, err := u.cfg.Client.Do(req)
	if err != nil {
		return nil, a, false, withoutURL(err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotModified && read:
		return nil, u.last, false, nil
	case res.StatusCode != http.StatusOK:
		return nil, a, false, fmt.Errorf("the server says %s", res.Status)
	}
	body, err = io.ReadAll(io.LimitReader(res.Body, manifest.MaxListBytes+1))
	if err != nil {
		return nil, a, false, withoutURL(err)
	}
	if len(body) > manifest.MaxListBytes {
		return nil, a, false, fmt.Errorf("has more than %d bytes, the limit of a list of pods", manifest.MaxListBytes)
	}
	a = response{res.Header.Get("ETag"), res.Header.Get("Last-Modified"), sha256.Sum256(body)}
	return body, a, !read || a.sum != u.last.sum, nil // many servers know no conditions (src-31)
}

// withoutURL takes operation and URL off an error of package net/http: the URL
// may have a password, and goes before the error anyway.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
