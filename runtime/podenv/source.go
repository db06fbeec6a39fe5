package podenv

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// The values of Source.Kind.
const (
	kindLiteral   = "value"
	kindConfigMap = "configMap"
	kindSecret    = "secret"
	kindField     = "field"
	kindResource  = "resource"
	kindFile      = "file"
	kindService   = "service"
)

// A Source describes the origin of a variable. It does not contain the value and can be logged.
type Source struct {
	// Kind is "value" (a literal in the spec), "configMap", "secret", "field", "resource",
	// "file" or "service".
	Kind string

	// Index is the index of the entry in the container's envFrom if EnvFrom is true, else
	// in its env. It is -1 for a service.
	EnvFrom bool
	Index   int

	// Object is the name of the ConfigMap, Secret or service, of the volume of a file, or
	// of the container of a resource, if the reference has one. Empty for other kinds.
	Object string

	// Key is the key in the ConfigMap or Secret, the path of the field, the name of the
	// resource, or path and key of a file: "config.env:KEY". Empty for other kinds.
	Key string
}

// String returns a description such as "envFrom[0], configMap settings, key LEVEL".
func (s Source) String() string {
	list := "env"
	if s.EnvFrom {
		list = "envFrom"
	}
	switch s.Kind {
	case kindService:
		return "service " + s.Object
	case kindConfigMap, kindSecret:
		return fmt.Sprintf("%s[%d], %s %s, key %s", list, s.Index, s.Kind, s.Object, s.Key)
	case kindFile:
		return fmt.Sprintf("%s[%d], file %s in volume %s", list, s.Index, s.Key, s.Object)
	case kindField, kindResource:
		return fmt.Sprintf("%s[%d], %s %s", list, s.Index, s.Kind, s.Key)
	default:
		return fmt.Sprintf("%s[%d]", list, s.Index)
	}
}

// sourceOf returns the source of the i-th entry of env.
func sourceOf(i int, from *v1.EnvVarSource) Source {
	s := Source{Kind: kindLiteral, Index: i}
	switch {
	case from == nil:
	case from.FieldRef != nil:
		s.Kind, s.Key = kindField, from.FieldRef.FieldPath
	case from.ResourceFieldRef != nil:
		s.Kind, s.Key = kindResource, from.ResourceFieldRef.Resource
		s.Object = from.ResourceFieldRef.ContainerName
	case from.ConfigMapKeyRef != nil:
		s.Kind, s.Object, s.Key = kindConfigMap, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key
	case from.SecretKeyRef != nil:
		s.Kind, s.Object, s.Key = kindSecret, from.SecretKeyRef.Name, from.SecretKeyRef.Key
	case from.FileKeyRef != nil:
		s.Kind, s.Object, s.Key = kindFile, from.FileKeyRef.VolumeName, from.FileKeyRef.Path+":"+from.FileKeyRef.Key
	}
	return s
}
