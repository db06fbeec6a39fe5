package apitest

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// discover answers the requests by which a client learns the resources, in the
// unaggregated form, which all clients read. It reports whether the request is one.
func discover(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	var answer any
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) == 1 && parts[0] == "version":
		answer = version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.0-apitest"}
	case len(parts) == 1 && parts[0] == "api":
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case len(parts) == 1 && parts[0] == "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, group := range groups() {
			if group.Name != "" {
				list.Groups = append(list.Groups, group)
			}
		}
		answer = list
	case len(parts) == 2 && parts[0] == "apis":
		for _, group := range groups() {
			if group.Name == parts[1] {
				answer = group
			}
		}
	case len(parts) == 2 && parts[0] == "api":
		answer = resourcesOf(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		answer = resourcesOf(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	default:
		return false
	}
	if answer == nil {
		writeError(w, notServed(r.URL.Path))
		return true
	}
	data, err := json.Marshal(answer)
	if err != nil {
		writeError(w, err)
		return true
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(data)
	return true
}

// groups returns the groups of the resources with their versions, which are preferred
// in the order of their names: v1 before v1beta1.
func groups() []metav1.APIGroup {
	all := map[schema.GroupVersion]bool{}
	for _, k := range kinds {
		all[k.version] = true
	}
	var out []metav1.APIGroup
	for _, gv := range slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupVersion) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	}) {
		served := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		if n := len(out); n > 0 && out[n-1].Name == gv.Group {
			out[n-1].Versions = append(out[n-1].Versions, served)
			continue
		}
		out = append(out, metav1.APIGroup{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: gv.Group,
			Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served,
		})
	}
	return out
}

// resourcesOf returns an *metav1.APIResourceList, or nil if nothing of gv is served.
func resourcesOf(gv schema.GroupVersion) any {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[name]
		if k.version != gv {
			continue
		}
		verbs := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
		if strings.HasSuffix(name, "reviews") {
			verbs = metav1.Verbs{"create"}
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: name, SingularName: strings.ToLower(k.kind), Kind: k.kind, Namespaced: k.namespaced, Verbs: verbs,
		})
		if k.status {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: name + "/status", Kind: k.kind, Namespaced: k.namespaced, Verbs: metav1.Verbs{"get", "patch", "update"},
			})
		}
		for _, sub := range k.creates {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: name + "/" + sub, Kind: createdKinds[sub], Namespaced: k.namespaced, Verbs: metav1.Verbs{"create"},
			})
		}
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}

// createdKinds are the kinds that are posted to subresources.
var createdKinds = map[string]string{"binding": "Binding", "token": "TokenRequest"}
