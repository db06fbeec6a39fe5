package apitest

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kubeparts/kubeparts/runtime"
)

// serverVersion is the version that the server reports.
var serverVersion = version.Info{Major: "1", Minor: strconv.Itoa(runtime.KubernetesMinor), GitVersion: "v" + runtime.KubernetesMajorMinor + ".0-apitest"}

// documents caches the responses that describe a set of resources. Controllers request them
// every few seconds.
type documents struct {
	mu  sync.Mutex
	all map[documentKey]document
}

type documentKey struct{ path, accept string }

type document struct {
	mime string
	data []byte
}

// maxDocuments bounds the cache: clients choose the header Accept.
const maxDocuments = 1000

// discover serves the requests by which a client learns the resources. It reports whether
// the request is one.
func (d *documents) discover(w http.ResponseWriter, r *http.Request, all kinds) bool {
	if r.Method != http.MethodGet {
		return false
	}
	at := documentKey{r.URL.Path, r.Header.Get("Accept")}
	d.mu.Lock()
	found, ok := d.all[at]
	d.mu.Unlock()
	if !ok {
		rec := &recorder{header: http.Header{}}
		if !all.describe(rec, r) {
			return false
		}
		found = document{rec.header.Get("Content-Type"), rec.body.Bytes()}
		if rec.code != http.StatusOK {
			maps.Copy(w.Header(), rec.header)
			w.WriteHeader(rec.code)
			_, _ = w.Write(found.data)
			return true
		}
		d.mu.Lock()
		if d.all == nil {
			d.all = map[documentKey]document{}
		}
		if len(d.all) < maxDocuments {
			d.all[at] = found
		}
		d.mu.Unlock()
	}
	if found.mime != "" {
		w.Header().Set("Content-Type", found.mime)
	}
	_, _ = w.Write(found.data)
	return true
}

// describe answers a request of discovery, aggregated if the client accepts that. It reports
// whether the request is one.
func (k kinds) describe(w http.ResponseWriter, r *http.Request) bool {
	var found any
	mime := "application/json"
	aggregated := strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") && strings.Contains(r.Header.Get("Accept"), "v=v2;") ||
		strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") && strings.Contains(r.Header.Get("Accept"), "v=v2,")
	path := strings.Trim(r.URL.Path, "/")
	parts := strings.Split(path, "/")
	switch {
	case path == "version":
		found = serverVersion
	case path == "healthz" || path == "livez" || path == "readyz":
		_, _ = w.Write([]byte("ok"))
		return true
	case path == "openapi/v2" || path == "openapi/v3" || strings.HasPrefix(path, "openapi/v3/"):
		return k.openAPI(w, r)
	case (path == "api" || path == "apis") && aggregated:
		found = k.aggregated(path == "api")
		mime = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	case path == "api":
		found = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{}}
	case path == "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, group := range k.groups() {
			if group.Name != "" {
				group.TypeMeta = metav1.TypeMeta{}
				list.Groups = append(list.Groups, group)
			}
		}
		found = list
	case len(parts) == 2 && parts[0] == "apis":
		for _, group := range k.groups() {
			if group.Name == parts[1] {
				found = group
			}
		}
	case len(parts) == 2 && parts[0] == "api":
		found = k.resourcesOf(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		found = k.resourcesOf(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	default:
		return false
	}
	if found == nil {
		group := ""
		if parts[0] == "apis" {
			group = parts[1]
		}
		writeError(w, k.notServed(group, len(parts)))
		return true
	}
	data, err := json.Marshal(found)
	if err != nil {
		writeError(w, err)
		return true
	}
	w.Header().Set("Content-Type", mime)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(data)
	return true
}

// groups returns the groups with their versions, of which the first is preferred.
func (k kinds) groups() []metav1.APIGroup {
	versions := map[string][]string{}
	for _, one := range k.sorted() {
		for _, v := range one.served() {
			if !slices.Contains(versions[one.group], v) {
				versions[one.group] = append(versions[one.group], v)
			}
		}
	}
	var out []metav1.APIGroup
	for name, all := range versions {
		slices.SortFunc(all, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
		for _, v := range all {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: schema.GroupVersion{Group: name, Version: v}.String(), Version: v})
		}
		group.PreferredVersion = group.Versions[0]
		out = append(out, group)
	}
	slices.SortFunc(out, func(a, b metav1.APIGroup) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// served returns the versions that are served.
func (k *kind) served() []string {
	if k.crd == nil {
		return k.versions
	}
	return slices.DeleteFunc(slices.Clone(k.versions), func(v string) bool { return !k.crd.serves(v) })
}

// A described resource is a resource or subresource as discovery presents it.
type described struct {
	name, kind string
	group      schema.GroupVersion // of the kind, if it is not that of the resource
	verbs      []string
}

// describedSubs returns the subresources.
func (k *kind) describedSubs() []described {
	var out []described
	names := slices.Clone(k.subresources)
	if !k.custom {
		slices.Sort(names)
	}
	for _, sub := range names {
		d := described{name: sub, kind: k.kind, verbs: []string{"get", "patch", "update"}}
		switch sub {
		case "scale":
			d.kind, d.group = "Scale", schema.GroupVersion{Group: "autoscaling", Version: "v1"}
		case "eviction":
			d.kind, d.group, d.verbs = "Eviction", schema.GroupVersion{Group: "policy", Version: "v1"}, []string{"create"}
		case "binding":
			d.kind, d.verbs = "Binding", []string{"create"}
		case "token":
			d.kind, d.group, d.verbs = "TokenRequest", schema.GroupVersion{Group: "authentication.k8s.io", Version: "v1"}, []string{"create"}
		case "finalize":
			d.verbs = []string{"update"}
		case "log":
			d.verbs = []string{"get"}
		case "exec", "attach", "portforward":
			d.kind, d.verbs = map[string]string{"exec": "PodExecOptions", "attach": "PodAttachOptions", "portforward": "PodPortForwardOptions"}[sub], []string{"create", "get"}
		case "proxy":
			d.kind, d.verbs = k.kind+"ProxyOptions", []string{"create", "delete", "get", "patch", "update"}
		}
		out = append(out, d)
	}
	return out
}

func (k *kind) verbs() []string {
	if k.review {
		return []string{"create"}
	}
	switch {
	case k.verbsOf != nil:
		return k.verbsOf
	case k.crd != nil:
		return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	case !k.deletesCollections():
		return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

// resourcesOf returns an *metav1.APIResourceList, or nil if nothing of gv is served.
func (k kinds) resourcesOf(gv schema.GroupVersion) any {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, one := range k.sorted() {
		if one.group != gv.Group || !slices.Contains(one.served(), gv.Version) {
			continue
		}
		resource := metav1.APIResource{
			Name: one.plural, SingularName: one.singular, Kind: one.kind, Namespaced: one.namespaced, Verbs: one.verbs(),
			ShortNames: one.short, Categories: one.categories,
		}
		if !one.review && one.verbsOf == nil {
			resource.StorageVersionHash = storageHash(one.stored())
		}
		list.APIResources = append(list.APIResources, resource)
		for _, sub := range one.describedSubs() {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: one.plural + "/" + sub.name, Kind: sub.kind, Group: sub.group.Group, Version: sub.group.Version, Namespaced: one.namespaced, Verbs: sub.verbs,
			})
		}
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}

// storageHash is kube-apiserver's hash of a stored version.
func storageHash(gvk schema.GroupVersionKind) string {
	sum := sha256.Sum256([]byte(gvk.Group + "/" + gvk.Version + "/" + gvk.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// aggregated returns all resources of the core group, or of the others, at once.
func (k kinds) aggregated(core bool) any {
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	for _, group := range k.groups() {
		if (group.Name == "") != core {
			continue
		}
		g := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group.Name}}
		for _, v := range group.Versions {
			g.Versions = append(g.Versions, apidiscovery.APIVersionDiscovery{
				Version: v.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
				Resources: k.aggregatedOf(schema.GroupVersion{Group: group.Name, Version: v.Version}),
			})
		}
		list.Items = append(list.Items, g)
	}
	return list
}

func (k kinds) aggregatedOf(gv schema.GroupVersion) []apidiscovery.APIResourceDiscovery {
	var out []apidiscovery.APIResourceDiscovery
	for _, one := range k.sorted() {
		if one.group != gv.Group || !slices.Contains(one.served(), gv.Version) {
			continue
		}
		d := apidiscovery.APIResourceDiscovery{
			Resource: one.plural, SingularResource: one.singular, Scope: apidiscovery.ScopeCluster, Verbs: one.verbs(),
			ShortNames: one.short, Categories: one.categories,
			ResponseKind: &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: one.kind},
		}
		if one.namespaced {
			d.Scope = apidiscovery.ScopeNamespace
		}
		for _, sub := range one.describedSubs() {
			at := gv
			if sub.group.Version != "" {
				at = sub.group
			}
			d.Subresources = append(d.Subresources, apidiscovery.APISubresourceDiscovery{
				Subresource: sub.name, Verbs: sub.verbs, ResponseKind: &metav1.GroupVersionKind{Group: at.Group, Version: at.Version, Kind: sub.kind},
			})
		}
		out = append(out, d)
	}
	return out
}
