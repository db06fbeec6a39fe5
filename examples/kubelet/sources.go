package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/podsource"
)

// declareSources declares where pods come from beside --manifests and the cluster.
func declareSources(fs *flag.FlagSet, o *options) {
	k := &o.kubelet
	fs.StringVar(&k.StaticPodURL, "manifest-url", k.StaticPodURL, "`URL` of a manifest, or of a list of them, that is asked for every httpCheckFrequency (20s); what it said last is remembered below --root")
	given := false // once: they replace those of the file
	fs.Func("manifest-url-header", "`key:value,…` sent to --manifest-url; may be given more than once", func(text string) error {
		if !given {
			k.StaticPodURLHeader, given = map[string][]string{}, true
		}
		for pair := range strings.SplitSeq(text, ",") {
			key, value, ok := strings.Cut(pair, ":")
			if key = strings.TrimSpace(key); !ok || key == "" {
				return fmt.Errorf("%q is not key:value", pair)
			}
			k.StaticPodURLHeader[key] = append(k.StaticPodURLHeader[key], strings.TrimSpace(value))
		}
		return nil
	})
}

// awayAfter is how long a source may take for its first word before it is taken to be
// away.
const awayAfter = 10 * time.Second

// wantedPods are where the pods come from that need no cluster.
type wantedPods struct {
	sources  map[string]podsource.PodSource
	problems []func() []podsource.Problem
	from     string // in words
}

// sourcesOf makes the sources of pods that need no cluster: the manifests and the
// URL, if they are named. An agent of a cluster may have none.
func (a *assembly) sourcesOf() (wantedPods, error) {
	opts := a.opts
	w := wantedPods{sources: map[string]podsource.PodSource{}, from: opts.manifests}
	hooks := podsource.FileHooks{Problem: a.problem, Mended: a.mended}
	if opts.manifests != "" {
		files, err := podsource.NewFile(podsource.FileConfig{
			Path: opts.manifests, NodeName: opts.nodeName, LocalObjects: opts.objects != "" && !opts.cluster.on(),
			Period: opts.kubelet.FileCheckFrequency.Duration, Logger: slog.New(slog.DiscardHandler), Hooks: hooks,
		})
		if err != nil {
			return w, err
		}
		w.sources[podsource.FileSource] = files
		w.problems = append(w.problems, files.Problems)
	}
	if opts.kubelet.StaticPodURL == "" {
		return w, nil
	}
	header := http.Header{}
	for key, values := range opts.kubelet.StaticPodURLHeader {
		for _, v := range values {
			header.Add(key, v)
		}
	}
	web, err := podsource.NewURL(podsource.URLConfig{
		URL: opts.kubelet.StaticPodURL, NodeName: opts.nodeName, Header: header,
		Period: opts.kubelet.HTTPCheckFrequency.Duration, Logger: slog.New(slog.DiscardHandler), Hooks: hooks,
	})
	if err != nil {
		return w, fmt.Errorf("--manifest-url: %w", err)
	}
	w.problems = append(w.problems, web.Problems)
	if u, err := url.Parse(opts.kubelet.StaticPodURL); err == nil {
		w.from = strings.TrimPrefix(w.from+" and "+u.Redacted(), " and ")
	}
	w.sources[podsource.HTTPSource], err = remembering(opts, podsource.HTTPSource, web, awayAfter, a.logger)
	return w, err
}

// problem prints why a manifest is not used.
func (a *assembly) problem(problem podsource.Problem) {
	consequence := "not used"
	if !problem.LastGood.IsZero() {
		consequence = "its last good version stays"
	}
	a.out.Printf("manifests", "%v; %s", problem.Err, consequence)
}

func (a *assembly) mended(path string) { a.out.Printf("manifests", "%s is in order", path) }

// remembering returns the source with a memory: an agent that starts while it is
// away goes on with what it said last, after patience.
func remembering(opts options, name string, source podsource.PodSource, patience time.Duration, logger *slog.Logger) (podsource.PodSource, error) {
	dir := filepath.Join(opts.root, "sources")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return podsource.NewCheckpoint(podsource.CheckpointConfig{Source: source, Path: filepath.Join(dir, name+".json"), Patience: patience, Logger: logger})
}

// check says what of the manifests can't be used.
func (w wantedPods) check() error {
	var errs []error
	for _, list := range w.problems {
		for _, p := range list() {
			errs = append(errs, p.Err)
		}
	}
	return errors.Join(errs...)
}
