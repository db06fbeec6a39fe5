package fakecri

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A Script says what a node is like. It is the same in Go and in YAML, where
// fields have their Go names in camel case, durations are as "90s", sizes as
// "64Mi" and cores as "250m", and a curve may be a list of points or one number:
//
//	containers:
//	  web: {logs: [{text: "hello %d", every: 1s}], endpoints: [{port: 8080, http: true, readyAfter: 5s}]}
//	  crash: {runFor: 2s, exitCode: 1, crashes: 3, memory: 64Mi, cpu: 250m}
//	images:
//	  busybox: {pullTime: 2s, layers: [{name: base, size: 4Mi}]}
//	faults:
//	  - {method: StartContainer, container: web, probability: 0.1, error: no shim, code: Unavailable}
type Script struct {
	// Containers by name, in any pod.
	Containers map[string]Behaviour
	// Images by name as pods use them; "*" is every image that is not named.
	Images map[string]ImageBehaviour
	// Faults are looked through in order for each call; the first that applies
	// is what goes wrong.
	Faults []FaultRule
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
	err := checkContainers(s.Containers)
	for _, name := range slices.Sorted(maps.Keys(s.Images)) {
		err = errors.Join(err, s.Images[name].check(under("images", name)))
	}
	_, also := imagesByName(s.Images)
	err = errors.Join(err, also)
	for i, f := range s.Faults {
		err = errors.Join(err, f.check(fmt.Sprintf("faults[%d]", i)))
	}
	return err
}

func checkContainers(containers map[string]Behaviour) error {
	var err error
	for _, name := range slices.Sorted(maps.Keys(containers)) {
		err = errors.Join(err, containers[name].check(under("containers", name)))
	}
	return err
}
