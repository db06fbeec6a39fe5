package kubelet

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

	"github.com/kubeparts/kubeparts/podsource"
)

// sources are the sources of pods.
type sources struct {
	byName   map[string]podsource.PodSource
	static   []string // names of the sources of static pods
	problems []func() []podsource.Problem
}

// newSources constructs the sources of static pods and adds that of the cluster.
func newSources(b base, c *cluster) (sources, error) {
	s := sources{byName: map[string]podsource.PodSource{}}
	hooks := podsource.ManifestHooks{
		Problem: func(p podsource.Problem) {
			effect := "not used"
			if !p.LastGood.IsZero() {
				effect = "the last valid version remains"
			}
			b.cfg.Notify(fmt.Sprintf("manifests: %v; %s", p.Err, effect))
		},
		Resolved: func(path string) { b.cfg.Notify("manifests: " + path + " is valid again") },
	}
	earlier, err := earlierPods(b)
	if err != nil {
		return s, err
	}
	if b.k.StaticPodPath != "" {
		files, err := podsource.NewFile(podsource.FileConfig{
			Path: b.k.StaticPodPath, NodeName: b.cfg.NodeName, LocalObjects: b.cfg.ObjectsDir != "" && c == nil,
			Exists: earlier, Period: b.k.FileCheckFrequency.Duration, Logger: slog.New(slog.DiscardHandler), Hooks: hooks,
		})
		if err != nil {
			return s, fmt.Errorf("staticPodPath: %w", err)
		}
		s.byName[podsource.FileSource] = files
		s.problems = append(s.problems, files.Problems)
	}
	if b.k.StaticPodURL != "" {
		header := http.Header{}
		for key, values := range b.k.StaticPodURLHeader {
			for _, v := range values {
				header.Add(key, v)
			}
		}
		web, err := podsource.NewURL(podsource.URLConfig{
			URL: b.k.StaticPodURL, NodeName: b.cfg.NodeName, Header: header,
			Exists: earlier, Period: b.k.HTTPCheckFrequency.Duration, Logger: slog.New(slog.DiscardHandler), Hooks: hooks,
		})
		if err != nil {
			return s, fmt.Errorf("staticPodURL: %w", err)
		}
		s.problems = append(s.problems, web.Problems)
		if s.byName[podsource.HTTPSource], err = checkpointed(b, podsource.HTTPSource, web, sourceTimeout); err != nil {
			return s, err
		}
	}
	s.static = slices.Sorted(maps.Keys(s.byName))
	if c != nil {
		for name, static := range s.byName {
			s.byName[name] = mirrored{static, c.pods, podExists(b)}
		}
		s.byName[podsource.APISource] = c.source
	}
	return s, nil
}

// earlierPods returns a function that reports whether a pod of this UID was on the node when this
// process started, and still is. It is nil if there was none, as then no kubelet of an earlier
// version has given a pod its UID.
func earlierPods(b base) (func(types.UID) bool, error) {
	dirs, err := os.ReadDir(filepath.Join(b.cfg.RootDir, "pods"))
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
func podExists(b base) func(types.UID) bool {
	return func(uid types.UID) bool {
		_, err := os.Lstat(filepath.Join(b.cfg.RootDir, "pods", string(uid)))
		return err == nil
	}
}

// err returns the problems of manifests that are not used.
func (s sources) err() error {
	var errs []error
	for _, problems := range s.problems {
		for _, p := range problems() {
			errs = append(errs, p.Err)
		}
	}
	return errors.Join(errs...)
}
