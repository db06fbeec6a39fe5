package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// openGiven opens the runtime of Config.Runtime.New, which uses no resources of this machine but files.
func (m *Machine) openGiven(ctx context.Context, s *stores.Stores) (err error) {
	m.NoResize = "the runtime of this node does not resize containers"
	if m.Backend, err = openBackend(ctx, s.Base); err != nil {
		return err
	}
	if m.Cgroups.capacity, err = m.Backend.capacity(s.Base); err != nil {
		return err
	}
	m.Cgroups.unused = true
	m.node = func() admission.Node { return m.Backend.admission(s.Base, m.Cgroups.Allocatable) }
	if err = m.openVolumes(s, m.node().Allocatable); err != nil {
		return err
	}
	name := s.Config.Runtime.Name
	m.Runtime = PodRuntime{Name: name, Display: name, Version: m.Backend.version}
	var cfg cri.Config
	if err := m.complete(s, &cfg); err != nil {
		return err
	}
	rt, err := s.Config.Runtime.New(cfg)
	switch {
	case err != nil:
		return fmt.Errorf("Config.Runtime.New: %w", err)
	case rt == nil:
		return errors.New("Config.Runtime.New returned nil")
	}
	if err := compose.Check(rt, reflect.TypeFor[pipeline.Admitter](), reflect.TypeFor[runtime.Execer](), reflect.TypeFor[runtime.FeatureReporter](),
		reflect.TypeFor[runtime.GarbageCollector](), reflect.TypeFor[runtime.StatsProvider](), reflect.TypeFor[runtime.ImageFSReporter](),
		reflect.TypeFor[runtime.ImageStore](), reflect.TypeFor[runtime.LogReader](), reflect.TypeFor[runtime.LogRotator](), reflect.TypeFor[io.Closer]()); err != nil {
		return fmt.Errorf("Config.Runtime.New: %w", err)
	}
	if c, ok := compose.As[io.Closer](rt); ok {
		s.Cleanups.Add(c.Close)
	}
	m.Runtime.Runtime = rt
	m.Runtime.Admitter, _ = compose.As[pipeline.Admitter](rt)
	return nil
}
