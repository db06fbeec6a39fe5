package apitest

import (
	"fmt"
	"maps"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Aggregate makes a handler serve a version of a group, as an APIService does in a cluster: for
// example metrics.k8s.io. It receives the requests below /apis/<resources.GroupVersion>/, and
// discovery has the resources with their Name, SingularName, Kind, Namespaced, Verbs, ShortNames
// and Categories. Fault, Admit and Admission are not called for these requests, and they are
// not recorded. A second call for the version replaces the first. It is an error if the server
// serves resources of the group itself.
func (s *Server) Aggregate(resources metav1.APIResourceList, handler http.Handler) error {
	gv, err := schema.ParseGroupVersion(resources.GroupVersion)
	if err != nil || gv.Group == "" || gv.Version == "" {
		return fmt.Errorf("apitest: Aggregate: the group version is %q, not <group>/<version>", resources.GroupVersion)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.kindsLocked())
	for at, k := range all {
		switch {
		case k.group != gv.Group:
		case k.verbsOf == nil:
			return fmt.Errorf("apitest: Aggregate: the server serves the group %s itself", gv.Group)
		case k.versions[0] == gv.Version:
			delete(all, at)
		}
	}
	for _, r := range resources.APIResources {
		k := &kind{
			group: gv.Group, plural: r.Name, singular: r.SingularName, kind: r.Kind, versions: []string{gv.Version},
			namespaced: r.Namespaced, short: r.ShortNames, categories: r.Categories, verbsOf: r.Verbs, custom: true,
		}
		all[k.resource()] = k
	}
	s.aggregated = maps.Clone(s.aggregated)
	if s.aggregated == nil {
		s.aggregated = map[string]http.Handler{}
	}
	s.aggregated[gv.String()] = handler
	s.serveLocked(all)
	return nil
}

// aggregatedLocked returns the handler of a path; nil if the server serves it.
func (s *Server) aggregatedLocked(path string) http.Handler {
	rest, ok := strings.CutPrefix(path, "/apis/")
	if parts := strings.SplitN(rest, "/", 3); ok && len(parts) == 3 && parts[2] != "" {
		return s.aggregated[parts[0]+"/"+parts[1]]
	}
	return nil
}
