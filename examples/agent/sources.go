package main

import (
	"log/slog"

	"github.com/kubeparts/kubeparts/podsource"
)

// sourcesOf makes the sources of pods that need no cluster: the manifests, if
// some are named. An agent of a cluster may have none.
func sourcesOf(opts options, out *printer) (*podsource.File, map[string]podsource.PodSource, error) {
	if opts.manifests == "" {
		return nil, map[string]podsource.PodSource{}, nil
	}
	files, err := podsource.NewFile(podsource.FileConfig{
		Path: opts.manifests, NodeName: opts.nodeName, LocalObjects: opts.objects != "" && opts.cluster.kubeconfig == "", Logger: slog.New(slog.DiscardHandler),
		Hooks: podsource.FileHooks{Problem: out.problem, Mended: out.mended},
	})
	return files, map[string]podsource.PodSource{podsource.FileSource: files}, err
}
