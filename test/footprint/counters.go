//go:build unix

package footprint

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scrape returns the metrics at a URL.
func scrape(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return parseMetrics(resp.Body)
}

func parseMetrics(r io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(r)
}

// criCalls returns the CRI calls that a containerd has served, from the metrics of its gRPC server:
// they count every client alike and cost neither. It counts the calls that have begun, so that
// streams are included. Lists are calls that list sandboxes, containers, images and statistics.
func criCalls(families map[string]*dto.MetricFamily) (calls criCount) {
	for _, m := range families["grpc_server_started_total"].GetMetric() {
		label := map[string]string{}
		for _, l := range m.GetLabel() {
			label[l.GetName()] = l.GetValue()
		}
		if !strings.HasPrefix(label["grpc_service"], "runtime.v1.") {
			continue
		}
		n := int64(m.GetCounter().GetValue())
		calls.all += n
		if strings.HasPrefix(label["grpc_method"], "List") {
			calls.lists += n
		}
	}
	return calls
}

// A criCount is a number of CRI calls, and how many of them were lists.
type criCount struct{ all, lists int64 }

func (c criCount) minus(o criCount) criCount { return criCount{c.all - o.all, c.lists - o.lists} }

// auditPolicy logs the requests of nodes: the API server's metrics do not separate its clients.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:nodes"]
- level: None
`

// apiCalls returns the number of requests in an audit log. A watch has several entries with one ID.
func apiCalls(file string) (int64, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return countRequests(f)
}

func countRequests(r io.Reader) (int64, error) {
	ids := map[string]bool{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return int64(len(ids)), nil // without a line that is being written
		}
		if err != nil {
			return 0, err
		}
		var entry struct{ AuditID string }
		if err := json.Unmarshal(line, &entry); err != nil {
			return 0, fmt.Errorf("audit log: %w", err)
		}
		ids[entry.AuditID] = true
	}
}
