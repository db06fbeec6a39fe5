package apitest

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// A managerKey identifies a field manager.
type managerKey struct {
	kind        *kind // a definition that changes has a new one
	gvk         schema.GroupVersionKind
	subresource string
}

// manager returns the field manager of a version and subresource. It is a manager of
// kube-apiserver's library; the types of built-in kinds are client-go's apply
// configurations, custom resources without a schema have deduced types, whose lists are
// atomic.
func (s *Server) manager(k *kind, gvk schema.GroupVersionKind, subresource string) (*managedfields.FieldManager, error) {
	s.managersMu.Lock()
	defer s.managersMu.Unlock()
	at := managerKey{k, gvk, subresource}
	if m := s.managers[at]; m != nil {
		return m, nil
	}
	var types managedfields.TypeConverter
	deduced := k.custom || k.scheme == nil
	switch {
	case k.crd != nil:
		types = managedfields.NewDeducedTypeConverter()
		if v := k.crd.version(gvk.Version); v != nil {
			types = v.types()
		}
	case deduced:
		types = managedfields.NewDeducedTypeConverter()
	default:
		types = applyconfigurations.NewTypeConverter(scheme.Scheme)
	}
	c := converter{k}
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	switch version := fieldpath.APIVersion(gvk.GroupVersion().String()); subresource {
	case "":
		if k.has("status") {
			reset[version] = fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
		}
	case "status":
		paths := fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
		if k.custom {
			paths.Insert(fieldpath.MakePathOrDie("metadata"))
		}
		reset[version] = fieldpath.NewExcludeSetFilter(paths)
	}
	build := managedfields.NewDefaultFieldManager
	if deduced {
		build = managedfields.NewDefaultCRDFieldManager
	}
	m, err := build(types, c, c, c, gvk, k.stored().GroupVersion(), subresource, reset)
	if err != nil {
		return nil, err
	}
	if s.managers == nil {
		s.managers = map[managerKey]*managedfields.FieldManager{}
	}
	s.managers[at] = m
	return m, nil
}

// dropManagers deletes the field managers of a resource that is not served any longer.
func (s *Server) dropManagers(k *kind) {
	s.managersMu.Lock()
	defer s.managersMu.Unlock()
	maps.DeleteFunc(s.managers, func(at managerKey, _ *managedfields.FieldManager) bool { return at.kind == k })
}

// A converter converts the versions of a kind for its field manager.
type converter struct{ kind *kind }

func (c converter) Convert(in, out, context any) error {
	return fmt.Errorf("convert %T to %T: not supported", in, out)
}

func (c converter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	from := in.GetObjectKind().GroupVersionKind()
	gvk, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
	if !ok {
		gv, isVersion := target.(schema.GroupVersion)
		if !isVersion {
			return nil, fmt.Errorf("no version of %v", from)
		}
		gvk = gv.WithKind(from.Kind)
	}
	return c.kind.convert(in.(object), gvk)
}

func (c converter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default leaves the object: defaults are set where requests are processed.
func (c converter) Default(runtime.Object) {}

func (c converter) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	return c.kind.make(gvk.Version), nil
}

// fieldManager returns the manager of a request: the parameter, or the name of the program
// in its User-Agent.
func (r *request) fieldManager() string {
	if name := r.query.Get("fieldManager"); name != "" {
		return name
	}
	name, _, _ := strings.Cut(r.UserAgent, "/")
	if len(name) > 128 {
		name = name[:128]
	}
	if name == "" {
		return "unknown"
	}
	return name
}

// track updates the managed fields of next, in the stored version, for a write that is not
// an apply; was is nil for a new object.
func (s *Server) track(r *request, was, next object) (object, error) {
	if s.Raw && (was == nil || !applies(was)) {
		if was != nil && next.GetManagedFields() == nil {
			next.SetManagedFields(was.GetManagedFields())
		}
		return next, nil
	}
	m, err := s.manager(r.kind, r.gvk, r.tracked())
	if err != nil {
		return nil, err
	}
	if was == nil {
		was = r.kind.make(r.kind.versions[0])
	} else {
		was = detached(was)
	}
	// The manager sets the managed fields of its arguments.
	return m.UpdateNoErrors(was, detached(next), r.fieldManager()).(object), nil
}

// tracked is the subresource in the managed fields.
func (r *request) tracked() string {
	if r.Subresource == "binding" {
		return ""
	}
	return cmp.Or(r.tracking, r.Subresource)
}

// applies reports whether an object was ever applied.
func applies(o object) bool {
	for _, entry := range o.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			return true
		}
	}
	return false
}

// apply executes a server-side apply.
func (s *Server) apply(r *request) (answer, error) {
	manager := r.query.Get("fieldManager")
	patch := &unstructured.Unstructured{Object: map[string]any{}}
	data, err := yaml.YAMLToJSON(r.body)
	if err == nil {
		_, err = kjson.UnmarshalStrict(data, &patch.Object)
	}
	if err != nil {
		return answer{}, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if patch.GroupVersionKind() != r.gvk {
		return answer{}, apierrors.NewBadRequest(fmt.Sprintf("the applied object is a %q of %q, expected a %s of %s", patch.GetKind(), patch.GetAPIVersion(), r.gvk.Kind, r.gvk.GroupVersion()))
	}
	if patch.GetName() == "" {
		patch.SetName(r.Name)
	}
	if err := r.place(patch); err != nil {
		return answer{}, err
	}
	if !r.kind.namespaced {
		patch.SetNamespace("")
	}
	r.applied = true
	// Unknown fields are found by decoding the configuration alone.
	if r.kind.scheme != nil {
		if _, err := r.fromPatched(patch.DeepCopy().Object); err != nil {
			return answer{}, err
		}
	}
	m, err := s.manager(r.kind, r.gvk, r.tracked())
	if err != nil {
		return answer{}, err
	}
	force := r.query.Get("force") == "true"
	for {
		done, err := s.change(r, func(current object) (object, error) {
			return r.merged(m, current, patch, manager, force)
		})
		if !apierrors.IsNotFound(err) || r.Subresource != "" {
			return done, err
		}
		if patch.GetUID() != "" {
			return answer{}, conflict(r, fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: ", patch.GetUID()))
		}
		one, err := r.merged(m, r.kind.make(r.gvk.Version), patch, manager, force)
		if err != nil {
			return answer{}, err
		}
		done, err = s.createObject(r, one)
		if !apierrors.IsAlreadyExists(err) {
			return done, err
		}
	}
}

// merged returns the object that results from an apply.
func (r *request) merged(m *managedfields.FieldManager, current object, patch *unstructured.Unstructured, manager string, force bool) (object, error) {
	result, err := m.Apply(detached(current), patch.DeepCopy(), manager, force)
	if err != nil {
		if _, ok := err.(apierrors.APIStatus); ok {
			return nil, err
		}
		return nil, err
	}
	if result == nil {
		return detached(current), nil
	}
	one, err := r.kind.convert(result.(object), r.gvk)
	if err != nil {
		return nil, r.invalidPatch(err)
	}
	if one == object(current) {
		one = detached(one)
	}
	return one, r.custom(one)
}
