package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// component is the name of the process at /statusz and /flagz.
const component = "kubelet"

// A Statusz describes the process for /statusz.
type Statusz struct {
	// Version is the version that the node reports, such as "v1.37.2". Required.
	Version string

	// Started is the time at which the process was started. Required.
	Started time.Time
}

// A zpage is a response in all its formats.
type zpage struct {
	kind string // Statusz or Flagz
	text string

	// fields are those of the object, in order, after its metadata. They are the same in
	// all versions.
	fields any
}

// statuszFields are the fields of a Statusz (KEP-4827).
type statuszFields struct {
	StartTime        metav1.Time `json:"startTime"`
	UptimeSeconds    int64       `json:"uptimeSeconds"`
	GoVersion        string      `json:"goVersion"`
	BinaryVersion    string      `json:"binaryVersion"`
	EmulationVersion string      `json:"emulationVersion"`
	Paths            []string    `json:"paths"`
}

// flagzFields are the fields of a Flagz (KEP-4828).
type flagzFields struct {
	Flags map[string]string `json:"flags"`
}

// zpageRoutes registers /statusz and /flagz. As in the kubelet they do not exist on a
// server without debugging handlers.
func (s *Server) zpageRoutes() {
	if !s.cfg.Debugging.Handlers {
		return
	}
	if s.cfg.Node.Flagz != nil {
		s.mux.HandleFunc("GET /flagz", func(w http.ResponseWriter, r *http.Request) { s.zpage(w, r, newFlagz(s.cfg.Node.Flagz)) })
	}
	if s.cfg.Node.Statusz != nil {
		s.mux.HandleFunc("GET /statusz", func(w http.ResponseWriter, r *http.Request) {
			s.zpage(w, r, newStatusz(*s.cfg.Node.Statusz, s.statuszPaths(), time.Now()))
		})
	}
}

// statuszPaths returns the paths that /statusz lists: as in the kubelet those for
// debugging, and not those that return pods.
func (s *Server) statuszPaths() []string {
	paths := []string{"/configz", "/debug", "/healthz"}
	if s.cfg.Node.Flagz != nil {
		paths = append(paths, "/flagz")
	}
	if len(s.cfg.Node.Metrics) > 0 {
		paths = append(paths, "/metrics")
	}
	slices.Sort(paths)
	return paths
}

func newStatusz(s Statusz, paths []string, now time.Time) zpage {
	f := statuszFields{
		StartTime: metav1.NewTime(s.Started), UptimeSeconds: max(0, int64(now.Sub(s.Started).Seconds())), GoVersion: goruntime.Version(),
		BinaryVersion: strings.TrimPrefix(s.Version, "v"), Paths: paths,
	}
	if v, err := utilversion.ParseGeneric(s.Version); err == nil {
		f.EmulationVersion = fmt.Sprintf("%d.%d", v.Major(), v.Minor())
	}
	text := fmt.Sprintf("\nStarted: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s\nEmulation version: %s\nPaths: %s\n",
		s.Started.Format(time.UnixDate), f.UptimeSeconds/3600, f.UptimeSeconds/60%60, f.UptimeSeconds%60,
		f.GoVersion, f.BinaryVersion, f.EmulationVersion, strings.Join(paths, " "))
	return zpage{"Statusz", text, f}
}

func newFlagz(flags map[string]string) zpage {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		fmt.Fprintf(&text, "%s: %s\n", name, flags[name])
	}
	return zpage{"Flagz", text.String(), flagzFields{flags}}
}

// zpageGroup is the API group of the structured formats.
const zpageGroup = "config.k8s.io"

// zpage responds with the page in the format that the client accepts.
func (s *Server) zpage(w http.ResponseWriter, r *http.Request, p zpage) {
	format, ok := negotiate(r.Header.Get("Accept"), p.kind)
	switch {
	case !ok:
		s.notAcceptable(w)
	case format.version == "":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "\n%s %s\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees "+
			"and is for debugging purposes only.\n%s", component, strings.ToLower(p.kind), p.text)
	default:
		s.structured(w, p, format)
	}
}

// structured responds with the page as an object of the API.
func (s *Server) structured(w http.ResponseWriter, p zpage, f zpageFormat) {
	text, err := p.encode(f)
	if err != nil {
		s.log.Error("Failed to encode response", "err", err)
		refuse(w, http.StatusInternalServerError, "Internal Error: failed to encode the response\n")
		return
	}
	if f.version == "v1alpha1" {
		w.Header().Set("Warning", fmt.Sprintf("299 - %q", "This version of the "+strings.ToLower(p.kind)+" endpoint is deprecated. Please use a newer version."))
	}
	w.Header().Set("Content-Type", fmt.Sprintf("%s;g=%s;v=%s;as=%s", f.mediaType, zpageGroup, f.version, p.kind))
	_, _ = w.Write(text)
}

func (p zpage) encode(f zpageFormat) ([]byte, error) {
	fields, err := json.Marshal(p.fields)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"name":%q},`, p.kind, zpageGroup+"/"+f.version, component)
	object := append([]byte(head), fields[1:]...)
	if f.mediaType == yamlType {
		return yaml.JSONToYAML(object)
	}
	return indent(object), nil
}

// indent returns JSON as the kubelet formats it for browsers and curl.
func indent(text []byte) []byte {
	var out bytes.Buffer
	_ = json.Indent(&out, text, "", "  ") // it is valid
	return out.Bytes()
}

// notAcceptable responds with the formats that exist, as the kubelet does.
func (s *Server) notAcceptable(w http.ResponseWriter) {
	text, _ := json.Marshal(metav1.Status{ // it can be encoded
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotAcceptable,
		Code: http.StatusNotAcceptable, Message: "only the following media types are accepted: " + strings.Join([]string{jsonType, yamlType, textType}, ", "),
	})
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(http.StatusNotAcceptable)
	_, _ = w.Write(indent(text))
}
