package fakecri

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Annotations of a pod with the text of a [fake.Behavior]: the first for all of its containers,
// the second, followed by the name of a container, for this one. The second takes
// precedence.
const (
	AnnotationBehavior          = "fakecri.kubeparts.io/behavior"
	AnnotationContainerBehavior = "behavior.fakecri.kubeparts.io/"
)

// ScriptConfig returns the configuration of a runtime that a script specifies, with random
// faults determined by seed. It returns an error if a rule of a fault cannot apply.
func ScriptConfig(s fake.Script, seed uint64) (Config, error) {
	cfg := Config{Seed: seed, Behaviors: s.Behaviors, Images: s.Images}
	if err := errors.Join(cfg.check(), checkRules(s.Faults)); err != nil {
		return Config{}, fmt.Errorf("fakecri: script: %w", err)
	}
	if len(s.Faults) > 0 {
		rules := slices.Clone(s.Faults)
		for i := range rules {
			rules[i].Call.Image = fullName(rules[i].Call.Image)
		}
		faults := fake.Faults(rules, seed)
		cfg.Faults = func(c fake.Call) fake.Fault {
			c.Image = fullName(c.Image)
			return faults(c)
		}
	}
	return cfg, nil
}

// supported are the options of behaviors that this runtime implements.
var supported = []string{
	"start", "fail", "exit", "oom", "reason", "message", "crashes", "stop", "stopCode", "ignoreTERM",
	"log", "http", "tcp", "memory", "cpu", "disk", "command",
}

func checkBehavior(b fake.Behavior) error { return errors.Join(b.Check(), b.Only(supported...)) }

// check returns the errors of containers and images, with their names.
func (cfg Config) check() error {
	_, err := byFullName(cfg.Images)
	if err == nil {
		_, err = byFullName(cfg.Behaviors.Images)
	}
	err = errors.Join(err,
		checkEach("container", cfg.Behaviors.Containers, checkBehavior),
		checkEach("image", cfg.Images, fake.Image.Check),
		checkEach("run", cfg.Behaviors.Images, checkBehavior),
		checkLayers(cfg.Images))
	if cfg.Images[everyImage].Present {
		err = errors.Join(err, errors.New("image *: cannot be present"))
	}
	return err
}

func checkEach[T any](kind string, m map[string]T, check func(T) error) (all error) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if err := check(m[name]); err != nil {
			all = errors.Join(all, fmt.Errorf("%s %s: %w", kind, name, err))
		}
	}
	return all
}

// A repertoire is Config.Behaviors, indexed.
type repertoire struct {
	containers map[string]*fake.Behavior
	images     map[string]*fake.Behavior // by full name
}

func newRepertoire(b fake.Behaviors) repertoire {
	images, _ := byFullName(b.Images) // Config.check has seen the error
	rep := repertoire{containers: make(map[string]*fake.Behavior, len(b.Containers)), images: images}
	for name, b := range b.Containers {
		rep.containers[name] = &b
	}
	return rep
}

// zero is the default behavior.
var zero fake.Behavior

// behaviorOf returns the behavior of a container, which is not nil and must not be
// modified. An invalid annotation is an error. The caller must hold r.mu.
func (r *Runtime) behaviorOf(s *sandbox, config *runtimeapi.ContainerConfig, of resolved) (*fake.Behavior, error) {
	name := config.GetMetadata().GetName()
	for _, key := range []string{AnnotationContainerBehavior + name, AnnotationBehavior} {
		if text, ok := s.config.GetAnnotations()[key]; ok {
			b, err := r.annotatedLocked(text)
			if err != nil {
				return nil, refused("annotation %s: %s", key, strings.TrimPrefix(err.Error(), "fake: "))
			}
			return b, nil
		}
	}
	if b, ok := r.behaviors.containers[name]; ok {
		return b, nil
	}
	// The image is usually given by its ID, and by its name in the pod, which is more
	// specific than the names of the image.
	for _, name := range slices.Concat([]string{config.GetImage().GetUserSpecifiedImage(), config.GetImage().GetImage()}, of.names) {
		if strings.HasPrefix(name, "sha256:") {
			continue
		}
		if named, err := parseImage(name); err == nil {
			if b := lookup(r.behaviors.images, named); b != nil {
				return b, nil
			}
		}
	}
	return &zero, nil
}

// maxAnnotated is the maximum number of cached annotations.
const maxAnnotated = 1000

// annotatedLocked parses an annotation. It is cached because many pods have the same.
func (r *Runtime) annotatedLocked(text string) (*fake.Behavior, error) {
	if b, ok := r.annotated[text]; ok {
		return b, nil
	}
	b, err := fake.ParseBehavior(text)
	if err = errors.Join(err, b.Only(supported...)); err != nil {
		return nil, err
	}
	if r.annotated == nil || len(r.annotated) >= maxAnnotated {
		r.annotated = map[string]*fake.Behavior{}
	}
	r.annotated[text] = &b
	return &b, nil
}
