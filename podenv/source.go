package podenv

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// A Kind is what sort of thing a variable's value came from.
type Kind int

// The kinds of sources. A Literal is the value in the spec, with its references
// expanded.
const (
	Literal Kind = iota
	ConfigMap
	Secret
	Field
	Resource
	EnvFile
	Service
)

// String returns the kind as it is written in a pod's manifest.
func (k Kind) String() string {
	names := [...]string{"value", "configMap", "secret", "field", "resource", "file", "service"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return names[k]
}

// A Source tells where a variable came from. It never holds the value, so that it
// can be shown where the value of a secret must not be.
type Source struct {
	Kind Kind

	// EnvFrom says that Index counts the container's envFrom, not its env. A
	// service is in neither; its Index is -1.
	EnvFrom bool
	Index   int

	// Object is the name of the ConfigMap, Secret or service, of the volume
	// that has the file, or of the container whose resource it is if that is
	// not the variable's own.
	Object string

	// Key in the object, the path of the field, the name of the resource, or
	// the path and key of a file, "config.env:KEY".
	Key string
}

// String returns the source in words, as in "envFrom[0], configMap settings, key
// LEVEL".
func (s Source) String() string {
	list := "env"
	if s.EnvFrom {
		list = "envFrom"
	}
	switch s.Kind {
	case Service:
		return "service " + s.Object
	case ConfigMap, Secret:
		return fmt.Sprintf("%s[%d], %v %s, key %s", list, s.Index, s.Kind, s.Object, s.Key)
	case EnvFile:
		return fmt.Sprintf("%s[%d], file %s in volume %s", list, s.Index, s.Key, s.Object)
	case Field, Resource:
		return fmt.Sprintf("%s[%d], %v %s", list, s.Index, s.Kind, s.Key)
	default:
		return fmt.Sprintf("%s[%d]", list, s.Index)
	}
}

// sourceOf returns the source that the i-th entry of env names.
func sourceOf(i int, from *v1.EnvVarSource) Source {
	s := Source{Index: i}
	switch {
	case from == nil:
	case from.FieldRef != nil:
		s.Kind, s.Key = Field, from.FieldRef.FieldPath
	case from.ResourceFieldRef != nil:
		s.Kind, s.Key = Resource, from.ResourceFieldRef.Resource
		s.Object = from.ResourceFieldRef.ContainerName
	case from.ConfigMapKeyRef != nil:
		s.Kind, s.Object, s.Key = ConfigMap, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key
	case from.SecretKeyRef != nil:
		s.Kind, s.Object, s.Key = Secret, from.SecretKeyRef.Name, from.SecretKeyRef.Key
	case from.FileKeyRef != nil:
		s.Kind, s.Object, s.Key = EnvFile, from.FileKeyRef.VolumeName, from.FileKeyRef.Path+":"+from.FileKeyRef.Key
	}
	return s
}
