package page_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
)

// The page of a node with one pod.
func ExampleNew() {
	handler, err := page.New(page.Config{Node: func(context.Context) page.Node {
		return page.Node{Name: "worker-1", Pods: []page.Pod{{
			UID: "1", Namespace: "default", Name: "web", Phase: "Running", Why: "Nothing is to be done.",
			Containers: []page.Container{{Name: "server", State: "running", Ready: true}},
		}}}
	}})
	if err != nil {
		log.Fatal(err)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.Contains(line, "<h1>") || strings.Contains(line, `scope="row"`) || strings.Contains(line, `data-label="State"`) {
			fmt.Print(line)
		}
	}
	// Output:
	// <h1><bdi>worker-1</bdi></h1>
	// <th scope="row" data-label="Pod"><a href="pod/default/web"><bdi>web</bdi></a> <span class="dim"><bdi>default</bdi></span></th>
	// <td data-label="State"><span class="pill ok">Running</span></td>
}
