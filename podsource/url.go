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
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

// URLConfig configures a [URL].
type URLConfig struct {
	// URL of a Pod or a PodList, http or https. Required. A password in it is sent to the
	// server and omitted from logs, errors and problems.
	URL string

	// NodeName is the name of the node, to which the pods are bound. Required.
	NodeName string

	// Exists reports whether the node has a pod of this UID: see manifest.StaticOptions. If
	// nil, static pods that another version started are replaced.
	Exists func(types.UID) bool

	// Header is sent with each request.
	Header http.Header

	// Period is the time between two requests. Zero means 20 s.
	Period time.Duration

	// Client sends the requests. If nil, a client with a timeout of 10 s is used.
	Client *http.Client

	// Logger receives problems. If nil, logs are discarded.
	Logger *slog.Logger

	// Hooks are called for observation.
	Hooks ManifestHooks
}

// A response identifies the content that the server returned.
type response struct {
	etag, modified string
	sum            [32]byte // of the body
}

const defaultTimeout = 10 * time.Second

// A URL is a PodSource of the manifests of a web server: a Pod or a PodList in YAML or JSON. They are
// converted to static pods by [manifest.Static], without an additional toleration (rule src-19).
//
// Requests are conditional, so that a server that supports ETag or Last-Modified sends changed content
// only. After a failed request the pods are unchanged. A pod of a list that cannot be used does not
// affect others, and its last valid version stays in effect.
type URL struct {
	cfg      URLConfig
	redacted string // the URL without user and query

	// Used by one call of Read at a time.
	last      response        // of the last successful request
	manifests []manifestState // in the order of the list
	pods      []*v1.Pod       // of the valid versions
	good      time.Time       // when the last request succeeded; zero: never

	problems problemTracker
}

// NewURL returns a URL, or an error if cfg is invalid. It sends no request.
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
		return nil, errors.New("podsource: URLConfig.URL is not a valid URL") // the error of Parse contains the password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("podsource: URLConfig.URL is %q; it must be http:// or https:// with a host", redactedURL(u))
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
	return &URL{cfg: cfg, redacted: redactedURL(u), problems: problemTracker{logger: cfg.Logger, hooks: cfg.Hooks}}, nil
}

// Problems returns the current problems: of the URL as a whole, or of pods of its list. Safe for
// concurrent use.
func (u *URL) Problems() []Problem { return u.problems.list() }

// Run sends a request at once and then each Period, and passes the pods to set when they have changed,
// until ctx is done; then it returns nil. Failed requests are retried.
func (u *URL) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	var sent []*v1.Pod
	synced, retry := false, firstRetry
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
		case err != nil && !synced: // the first set must not be delayed by a Period
			wait = min(wait, retry)
			retry = min(2*retry, lastRetry)
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

// Read sends one request and returns the pods in effect, in the order of the list. It is for programs
// with a loop of their own and must not be called while Run runs.
//
// It returns an error if there is no set to deliver: the request failed, the response is not a manifest,
// or it is a single manifest that has never been valid. Other pods that cannot be used are a [Problem],
// not an error.
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
		// Probably a mistake of the server (rule src-31).
		empty = &Problem{Path: u.redacted, Err: fmt.Errorf("podsource: %s: empty response: no pods are desired", u.redacted)}
	}
	u.pods = u.problems.publish(u.manifests, now, empty)
	if len(u.manifests) == 1 && u.manifests[0].path == u.redacted && u.manifests[0].pod == nil {
		return nil, u.manifests[0].err
	}
	return slices.Clone(u.pods), nil
}

// updateManifests replaces the states of the manifests by those of the items.
func (u *URL) updateManifests(items []manifest.Item, now time.Time) {
	previous := make(map[string]manifestState, len(u.manifests))
	for _, m := range u.manifests {
		previous[m.path] = m
	}
	u.manifests = nil
	for _, it := range items {
		m := previous[u.redacted+it.Name]
		m.path = u.redacted + it.Name
		if m, ok := updateManifest(m, it.Data, nil, func(data []byte) (*v1.Pod, error) {
			return manifest.Static(data, u.cfg.NodeName, "url:"+u.cfg.URL, manifest.StaticOptions{NoToleration: true, Exists: u.cfg.Exists})
		}, now); ok {
			u.manifests = append(u.manifests, m)
		}
	}
}

// fetch returns the content of the URL. If fresh is false, it has not changed and body is not used.
func (u *URL) fetch(ctx context.Context) (body []byte, a response, fresh bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.cfg.URL, nil)
	if err != nil {
		return nil, a, false, errors.New("invalid request URL")
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
		return nil, a, false, fmt.Errorf("unexpected HTTP status %s", res.Status)
	}
	body, err = io.ReadAll(io.LimitReader(res.Body, manifest.MaxListBytes+1))
	if err != nil {
		return nil, a, false, withoutURL(err)
	}
	if len(body) > manifest.MaxListBytes {
		return nil, a, false, fmt.Errorf("more than %d bytes, the limit for a list of pods", manifest.MaxListBytes)
	}
	a = response{res.Header.Get("ETag"), res.Header.Get("Last-Modified"), sha256.Sum256(body)}
	return body, a, !read || a.sum != u.last.sum, nil // many servers ignore conditional headers
}

// redactedURL returns a URL for messages: without user, query and fragment, which may contain
// credentials.
func redactedURL(u *url.URL) string {
	out := *u
	out.User, out.RawQuery, out.ForceQuery, out.Fragment, out.RawFragment = nil, "", false, "", ""
	return out.String()
}

// withoutURL returns an error of package net/http without operation and URL: the URL may contain a
// password, and precedes the error anyway.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
