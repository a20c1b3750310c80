package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/server"
)

// A program serves its store for readers, and a client follows a query: it keeps the
// id of the last whole event and would send it as Last-Event-ID to go on.
func Example() {
	ctx := context.Background()
	db, err := triegs.Open("", &triegs.Options{RetainedEpochs: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	if _, err := db.Register(ctx, "likes", `likes(who, what) :- likedBy(what, who).`); err != nil {
		fmt.Println(err)
		return
	}
	handler, err := server.New(db, server.Options{
		Authorize: func(_ *http.Request, a server.Action) error {
			if a.Verb.Writes() {
				return &server.Refusal{Status: http.StatusForbidden, Message: "for readers"}
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer handler.Close()
	site := httptest.NewServer(handler)
	defer site.Close()

	resp, err := http.Get(site.URL + "/queries/likes/updates?snapshot=1&where.who=%22Mia%22")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	s := triegs.String
	_, err = db.Append(ctx, triegs.Batch{Events: []triegs.Event{
		triegs.Edge("likedBy", s("tweet1"), s("Mia")),
		triegs.Edge("likedBy", s("tweet1"), s("Max")),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	lines := bufio.NewScanner(resp.Body)
	id := ""
	for updates := 0; updates < 2 && lines.Scan(); {
		switch line := lines.Text(); {
		case strings.Contains(line, `"new":`):
			fmt.Println(strings.TrimPrefix(line, "data: "))
		case strings.HasPrefix(line, "id: "):
			id = strings.TrimPrefix(line, "id: ")
		case line == "" && id != "":
			updates++
		}
	}
	token, err := triegs.ParseToken(id)
	fmt.Println(token.Epoch(), err)
	// Output:
	// {"epoch":2,"query":"likes","who":"Mia","what":"tweet1","old":0,"new":1}
	// 2 <nil>
}
