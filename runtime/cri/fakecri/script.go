package fakecri

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Behaviours maps names of containers, in any pod, and of images, as in Config.Images, to
// the behavior of containers. A container name takes precedence over an image, and an
// annotation of the pod over both; see [AnnotationBehaviour].
type Behaviours struct {
	Containers map[string]Behaviour
	Images     map[string]Behaviour
}

// Annotations of a pod with a [Behaviour] in YAML: the first for all of its containers,
// the second, followed by the name of a container, for this one. The second takes
// precedence.
const (
	AnnotationBehaviour          = "fakecri.kubeparts.io/behaviour"
	AnnotationContainerBehaviour = "behaviour.fakecri.kubeparts.io/"
)

// A Script is a configuration in YAML. Field names are the Go names in camel case.
// Durations are written as "90s", sizes as "64Mi" and cores as "250m"; a curve may be a
// list of points or one number. The fields of a container are those of [Behaviour], of an
// image those of [ImageBehaviour] and run, of a fault those of [FaultRule].
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
	// Containers is Behaviours.Containers.
	Containers map[string]Behaviour
	// Images is Config.Images, with Behaviours.Images in the field run.
	Images map[string]ScriptImage
	// Faults are the fault rules. For each call the first matching rule applies.
	Faults []FaultRule
}

// A ScriptImage is an image and the behavior of its containers.
type ScriptImage struct {
	ImageBehaviour
	Run *Behaviour // may be nil
}

// Config returns the configuration of a runtime, with random faults determined by seed.
func (s Script) Config(seed uint64) Config {
	cfg := Config{Seed: seed, Behaviours: Behaviours{Containers: s.Containers}}
	for name, img := range s.Images {
		if cfg.Images == nil {
			cfg.Images = map[string]ImageBehaviour{}
		}
		cfg.Images[name] = img.ImageBehaviour
		if img.Run != nil {
			if cfg.Behaviours.Images == nil {
				cfg.Behaviours.Images = map[string]Behaviour{}
			}
			cfg.Behaviours.Images[name] = *img.Run
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

// ParseBehaviour parses the behavior of one container in YAML, as in annotations of pods:
// "{runFor: 2s, exitCode: 1}".
func ParseBehaviour(data []byte) (Behaviour, error) {
	var b Behaviour
	if err := readYAML(data, &b); err != nil {
		return Behaviour{}, fmt.Errorf("fakecri: behaviour: %w", err)
	}
	if err := b.check(""); err != nil {
		return Behaviour{}, fmt.Errorf("fakecri: behaviour: %w", err)
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
		_, err = byFullName(cfg.Behaviours.Images)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Behaviours.Containers)) {
		err = errors.Join(err, cfg.Behaviours.Containers[name].check(under("containers", name)))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Images)) {
		at := under("images", name)
		err = errors.Join(err, cfg.Images[name].check(at))
		if name == everyImage && cfg.Images[name].Present {
			err = errors.Join(err, fmt.Errorf("%s: every image cannot be there", under(at, "present")))
		}
	}
	err = errors.Join(err, checkLayers(cfg.Images))
	for _, name := range slices.Sorted(maps.Keys(cfg.Behaviours.Images)) {
		err = errors.Join(err, cfg.Behaviours.Images[name].check(under(under("images", name), "run")))
	}
	return err
}

// A repertoire is Behaviours, indexed.
type repertoire struct {
	containers map[string]*Behaviour
	images     map[string]*Behaviour // by full name
}

func newRepertoire(b Behaviours) repertoire {
	images, _ := byFullName(b.Images) // Config.check has seen the error
	rep := repertoire{containers: make(map[string]*Behaviour, len(b.Containers)), images: images}
	for name, b := range b.Containers {
		rep.containers[name] = &b
	}
	return rep
}

// zero is the default behavior.
var zero Behaviour

// behaviourOf returns the behavior of a container, which is not nil and must not be
// modified. An invalid annotation is an error. The caller must hold r.mu.
func (r *Runtime) behaviourOf(s *sandbox, config *runtimeapi.ContainerConfig, of resolved) (*Behaviour, error) {
	name := config.GetMetadata().GetName()
	for _, key := range []string{AnnotationContainerBehaviour + name, AnnotationBehaviour} {
		if text, ok := s.config.GetAnnotations()[key]; ok {
			b, err := r.annotatedLocked(text)
			if err != nil {
				return nil, refused("annotation %s: %s", key, strings.TrimPrefix(err.Error(), "fakecri: "))
			}
			return b, nil
		}
	}
	if b, ok := r.behaviours.containers[name]; ok {
		return b, nil
	}
	// The image is usually given by its ID, and by its name in the pod, which is more
	// specific than the names of the image.
	for _, name := range slices.Concat([]string{config.GetImage().GetUserSpecifiedImage(), config.GetImage().GetImage()}, of.names) {
		if strings.HasPrefix(name, "sha256:") {
			continue
		}
		if named, err := parseImage(name); err == nil {
			if b := lookup(r.behaviours.images, named); b != nil {
				return b, nil
			}
		}
	}
	return &zero, nil
}

// maxAnnotated is the maximum number of cached annotations.
const maxAnnotated = 1000

// annotatedLocked parses an annotation. It is cached because many pods have the same.
func (r *Runtime) annotatedLocked(text string) (*Behaviour, error) {
	if b, ok := r.annotated[text]; ok {
		return b, nil
	}
	b, err := ParseBehaviour([]byte(text))
	if err != nil {
		return nil, err
	}
	if r.annotated == nil || len(r.annotated) >= maxAnnotated {
		r.annotated = map[string]*Behaviour{}
	}
	r.annotated[text] = &b
	return &b, nil
}
