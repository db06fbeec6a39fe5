package fakecri

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Behaviors maps names of containers, in any pod, and of images, as in Config.Images, to
// the behavior of containers. A container name takes precedence over an image, and an
// annotation of the pod over both; see [AnnotationBehavior].
type Behaviors struct {
	Containers map[string]Behavior
	Images     map[string]Behavior
}

// Annotations of a pod with a [Behavior] in YAML: the first for all of its containers,
// the second, followed by the name of a container, for this one. The second takes
// precedence.
const (
	AnnotationBehavior          = "fakecri.kubeparts.io/behavior"
	AnnotationContainerBehavior = "behavior.fakecri.kubeparts.io/"
)

// A Script is a configuration in YAML. Field names are the Go names in camel case.
// Durations are written as "90s", sizes as "64Mi" and cores as "250m"; a curve may be a
// list of points or one number. The fields of a container are those of [Behavior], of an
// image those of [ImageBehavior] and run, of a fault those of [FaultRule].
// examples/fakecri/node.yaml is a longer example:
//
//	containers:
//	  web: {logs: [{text: "hello %d", every: 1s}], endpoints: [{port: 8080, http: true, readyAfter: 5s}]}
//	  crash: {runFor: 2s, exitCode: 1, crashes: 3, memory: 64Mi, cpu: 250m}
//	images:
//	  busybox: {pullTime: 2s, layers: [{name: base, size: 4Mi}], run: {runFor: 1m}}
//	faults:
//	  - {method: StartContainer, container: web, probability: 0.1, error: no shim, code: Unavailable}
type Script struct {
	// Containers is Behaviors.Containers.
	Containers map[string]Behavior
	// Images is Config.Images, with Behaviors.Images in the field run.
	Images map[string]ScriptImage
	// Faults are the fault rules. For each call the first matching rule applies.
	Faults []FaultRule
}

// A ScriptImage is an image and the behavior of its containers.
type ScriptImage struct {
	ImageBehavior
	Run *Behavior // may be nil
}

// Config returns the configuration of a runtime, with random faults determined by seed.
func (s Script) Config(seed uint64) Config {
	cfg := Config{Seed: seed, Behaviors: Behaviors{Containers: s.Containers}}
	for name, img := range s.Images {
		if cfg.Images == nil {
			cfg.Images = map[string]ImageBehavior{}
		}
		cfg.Images[name] = img.ImageBehavior
		if img.Run != nil {
			if cfg.Behaviors.Images == nil {
				cfg.Behaviors.Images = map[string]Behavior{}
			}
			cfg.Behaviors.Images[name] = *img.Run
		}
	}
	if len(s.Faults) > 0 {
		cfg.Faults = s.faults(seed)
	}
	return cfg
}

// ParseScript parses a script. Unknown fields and invalid values are errors that contain
// their place: "containers.web.runFor: -1s is negative".
func ParseScript(data []byte) (Script, error) {
	var s Script
	if err := readYAML(data, &s); err != nil {
		return Script{}, fmt.Errorf("fakecri: script: %w", err)
	}
	if err := s.check(); err != nil {
		return Script{}, fmt.Errorf("fakecri: script: %w", err)
	}
	return s, nil
}

// ParseBehavior parses the behavior of one container in YAML, as in annotations of pods:
// "{runFor: 2s, exitCode: 1}".
func ParseBehavior(data []byte) (Behavior, error) {
	var b Behavior
	if err := readYAML(data, &b); err != nil {
		return Behavior{}, fmt.Errorf("fakecri: behavior: %w", err)
	}
	if err := b.check(""); err != nil {
		return Behavior{}, fmt.Errorf("fakecri: behavior: %w", err)
	}
	return b, nil
}

func (s Script) check() error {
	cfg := s.Config(0)
	err := cfg.check()
	for i, f := range s.Faults {
		err = errors.Join(err, f.check(fmt.Sprintf("faults[%d]", i)))
	}
	return err
}

// check returns the errors of containers and images, with their places in a script.
func (cfg Config) check() error {
	_, err := byFullName(cfg.Images)
	if err == nil {
		_, err = byFullName(cfg.Behaviors.Images)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Behaviors.Containers)) {
		err = errors.Join(err, cfg.Behaviors.Containers[name].check(under("containers", name)))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Images)) {
		at := under("images", name)
		err = errors.Join(err, cfg.Images[name].check(at))
		if name == everyImage && cfg.Images[name].Present {
			err = errors.Join(err, fmt.Errorf("%s: every image cannot be there", under(at, "present")))
		}
	}
	err = errors.Join(err, checkLayers(cfg.Images))
	for _, name := range slices.Sorted(maps.Keys(cfg.Behaviors.Images)) {
		err = errors.Join(err, cfg.Behaviors.Images[name].check(under(under("images", name), "run")))
	}
	return err
}

// A repertoire is Behaviors, indexed.
type repertoire struct {
	containers map[string]*Behavior
	images     map[string]*Behavior // by full name
}

func newRepertoire(b Behaviors) repertoire {
	images, _ := byFullName(b.Images) // Config.check has seen the error
	rep := repertoire{containers: make(map[string]*Behavior, len(b.Containers)), images: images}
	for name, b := range b.Containers {
		rep.containers[name] = &b
	}
	return rep
}

// zero is the default behavior.
var zero Behavior

// behaviorOf returns the behavior of a container, which is not nil and must not be
// modified. An invalid annotation is an error. The caller must hold r.mu.
func (r *Runtime) behaviorOf(s *sandbox, config *runtimeapi.ContainerConfig, of resolved) (*Behavior, error) {
	name := config.GetMetadata().GetName()
	for _, key := range []string{AnnotationContainerBehavior + name, AnnotationBehavior} {
		if text, ok := s.config.GetAnnotations()[key]; ok {
			b, err := r.annotatedLocked(text)
			if err != nil {
				return nil, refused("annotation %s: %s", key, strings.TrimPrefix(err.Error(), "fakecri: "))
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
func (r *Runtime) annotatedLocked(text string) (*Behavior, error) {
	if b, ok := r.annotated[text]; ok {
		return b, nil
	}
	b, err := ParseBehavior([]byte(text))
	if err != nil {
		return nil, err
	}
	if r.annotated == nil || len(r.annotated) >= maxAnnotated {
		r.annotated = map[string]*Behavior{}
	}
	r.annotated[text] = &b
	return &b, nil
}
