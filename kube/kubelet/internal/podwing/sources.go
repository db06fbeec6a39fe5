package podwing

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/podsource"
)

// Sources are the sources of pods.
type Sources struct {
	ByName   map[string]podsource.PodSource
	Static   []string // names of the sources of static pods
	problems []func() []podsource.Problem
}

// newSources constructs the sources of static pods and adds that of the cluster.
func newSources(b stores.Base, c *stores.Cluster) (Sources, error) {
	s := Sources{ByName: map[string]podsource.PodSource{}}
	hooks := podsource.ManifestHooks{
		Problem: func(p podsource.Problem) {
			effect := "not used"
			if !p.LastGood.IsZero() {
				effect = "the last valid version remains"
			}
			b.Config.Notify(fmt.Sprintf("manifests: %v; %s", p.Err, effect))
		},
		Resolved: func(path string) { b.Config.Notify("manifests: " + path + " is valid again") },
	}
	earlier, err := earlierPods(b)
	if err != nil {
		return s, err
	}
	if b.Configuration.StaticPodPath != "" {
		files, err := podsource.NewFile(podsource.FileConfig{
			Path: b.Configuration.StaticPodPath, NodeName: b.Config.NodeName, LocalObjects: stores.HasLocalObjects(b.Config),
			Exists: earlier, Period: b.Configuration.FileCheckFrequency.Duration, Logger: slog.New(slog.DiscardHandler), Hooks: hooks,
		})
		if err != nil {
			return s, fmt.Errorf("staticPodPath: %w", err)
		}
		s.ByName[podsource.FileSource] = files
		s.problems = append(s.problems, files.Problems)
	}
	if b.Configuration.StaticPodURL != "" {
		header := http.Header{}
		for key, values := range b.Configuration.StaticPodURLHeader {
			for _, v := range values {
				header.Add(key, v)
			}
		}
		web, err := podsource.NewURL(podsource.URLConfig{
			URL: b.Configuration.StaticPodURL, NodeName: b.Config.NodeName, Header: header,
			Exists: earlier, Period: b.Configuration.HTTPCheckFrequency.Duration, Logger: slog.New(slog.DiscardHandler), Hooks: hooks,
		})
		if err != nil {
			return s, fmt.Errorf("staticPodURL: %w", err)
		}
		s.problems = append(s.problems, web.Problems)
		if s.ByName[podsource.HTTPSource], err = stores.Checkpointed(b, podsource.HTTPSource, web, stores.SourceTimeout); err != nil {
			return s, err
		}
	}
	s.Static = slices.Sorted(maps.Keys(s.ByName))
	if c != nil {
		for name, static := range s.ByName {
			s.ByName[name] = mirrored{static, c.Pods, podExists(b)}
		}
		s.ByName[podsource.APISource] = c.Source
	}
	return s, nil
}

// earlierPods returns a function that reports whether a pod of this UID was on the node when this
// process started, and still is. It is nil if there was none, as then no kubelet of an earlier
// version has given a pod its UID.
func earlierPods(b stores.Base) (func(types.UID) bool, error) {
	dirs, err := os.ReadDir(filepath.Join(b.Config.RootDir, "pods"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, nil
	}
	uids := make(map[types.UID]bool, len(dirs))
	for _, dir := range dirs {
		uids[types.UID(dir.Name())] = true
	}
	return func(uid types.UID) bool { return uids[uid] && podExists(b)(uid) }, nil
}

// podExists returns a function that reports whether the node has a pod of this UID: it has a
// directory, also if a kubelet started it.
func podExists(b stores.Base) func(types.UID) bool {
	return func(uid types.UID) bool {
		_, err := os.Lstat(filepath.Join(b.Config.RootDir, "pods", string(uid)))
		return err == nil
	}
}

// Err returns the problems of manifests that are not used.
func (s Sources) Err() error {
	var errs []error
	for _, problems := range s.problems {
		for _, p := range problems() {
			errs = append(errs, p.Err)
		}
	}
	return errors.Join(errs...)
}
