package fakecri

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Behaviours say what containers do, by the names of containers, in any pod, and
// of images, which are named as in Config.Images. The name of the container
// counts before the image's, and an annotation of the pod before both: see
// [AnnotationBehaviour].
type Behaviours struct {
	Containers map[string]Behaviour
	Images     map[string]Behaviour
}

// Annotations of a pod that hold the YAML of a [Behaviour]: the first for its
// containers, the second, with the container's name added, for one of them,
// which counts before the first.
const (
	AnnotationBehaviour          = "fakecri.kubeparts.io/behaviour"
	AnnotationContainerBehaviour = "behaviour.fakecri.kubeparts.io/"
)

// A Script says what a node is like, for tests that rather have it in a file. In
// YAML its fields, and those of what it holds, have their Go names in camel
// case. Durations are as "90s", sizes as "64Mi" and cores as "250m", and a
// curve may be a list of points or one number. The fields of a container are those
// of [Behaviour], of an image those of [ImageBehaviour] and run, of a fault those of
// [FaultRule]; examples/fakecri/node.yaml is a longer one:
//
//	containers:
//	  web: {logs: [{text: "hello %d", every: 1s}], endpoints: [{port: 8080, http: true, readyAfter: 5s}]}
//	  crash: {runFor: 2s, exitCode: 1, crashes: 3, memory: 64Mi, cpu: 250m}
//	images:
//	  busybox: {pullTime: 2s, layers: [{name: base, size: 4Mi}], run: {runFor: 1m}}
//	faults:
//	  - {method: StartContainer, container: web, probability: 0.1, error: no shim, code: Unavailable}
type Script struct {
	// Containers is as Behaviours.Containers.
	Containers map[string]Behaviour
	// Images is as Config.Images.
	Images map[string]ScriptImage
	// Faults are looked through in order for each call; the first that hits it
	// is what goes wrong.
	Faults []FaultRule
}

// A ScriptImage is an image and what containers of it do.
type ScriptImage struct {
	ImageBehaviour
	Run *Behaviour // nil: nothing is said
}

// Config returns the configuration of a runtime that is as the script says, with
// chance from the seed.
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

// ParseScript reads a script of YAML. What it does not know, or what no node can
// be like, is an error with the place of it: "containers.web.runFor: -1s is
// negative".
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

// ParseBehaviour reads the YAML of one container's behaviour, as annotations of
// pods have it: "{runFor: 2s, exitCode: 1}".
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

// check returns what is wrong with what is said of containers and images, with
// its place in a script.
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

// A repertoire is Behaviours, made ready to be looked up.
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

// zero is the behaviour of what has none.
var zero Behaviour

// behaviourOf, with r.mu held, returns what a container of an image does: never nil, and never
// changed. An annotation that cannot be read is an error, so that whoever wrote
// it sees it.
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
	// The image is mostly given by its ID, beside the name that the pod has for
	// it, which says more than the names that the image has.
	for _, name := range slices.Concat([]string{config.GetImage().GetUserSpecifiedImage(), config.GetImage().GetImage()}, of.names) {
		if strings.HasPrefix(name, "sha256:") {
			continue
		}
		if named, err := parseImage(name); err == nil {
			if b := said(r.behaviours.images, named); b != nil {
				return b, nil
			}
		}
	}
	return &zero, nil
}

// maxAnnotated is how many behaviours of annotations are remembered.
const maxAnnotated = 1000

// annotatedLocked reads an annotation. Thousands of pods have the same, mostly.
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
