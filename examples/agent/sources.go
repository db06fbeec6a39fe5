package main

import (
	"log/slog"

	"github.com/kubeparts/kubeparts/podsource"
)

// sourcesOf makes the sources of pods: the manifests, if some are named, which an
// agent of a cluster need not have, and the cluster.
func (a *assembly) sourcesOf() (*podsource.File, map[string]podsource.PodSource, error) {
	opts := a.opts
	if opts.manifests == "" {
		return nil, a.cluster.sources(map[string]podsource.PodSource{}), nil
	}
	files, err := podsource.NewFile(podsource.FileConfig{
		Path: opts.manifests, NodeName: opts.nodeName, LocalObjects: opts.objects != "" && opts.cluster.kubeconfig == "", Logger: slog.New(slog.DiscardHandler),
		Hooks: podsource.FileHooks{Problem: a.out.problem, Mended: a.out.mended},
	})
	return files, a.cluster.sources(map[string]podsource.PodSource{podsource.FileSource: files}), err
}
