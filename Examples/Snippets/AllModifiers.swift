// The code of the guide AllModifiers: the build compiles it, and a test compares it with the guide.

// snippet: all modifiers
import Operation

func modifiedForecast() -> some QueryRequest<Forecast, ForecastQuery.State> {
  ForecastQuery(place: "Bergen")
    .timeout(after: .seconds(5))
    .retry(limit: 4)
    .backoff(.constant(.seconds(1)))
    .stale(after: .seconds(600))
    .rerun(every: .seconds(60))
}
// end
